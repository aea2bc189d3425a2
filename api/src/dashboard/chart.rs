//! Charts of a series over time as SVG, in the colours of the page.
//!
//! The drawing library writes fixed colours. They are replaced by variables of the style sheet, so the same drawing works in the light and
//! the dark theme. A table next to it contains the data.

use plotters::prelude::*;

/// Width and height of a column chart that is shown next to other content.
const COLUMNS_SIZE: (u32, u32) = (420, 150);
const LABEL_WIDTH: u32 = 52;
const LABEL_HEIGHT: u32 = 28;
/// Maximum number of labels below columns: as many as fit without overlap.
const LABELS_MAX: usize = 5;
/// Large enough for labels of 11 pixels at the width of a phone; the library draws letters a fifth smaller.
const FONT: (&str, u32) = ("sans-serif", 19);
const BAR: RGBColor = RGBColor(1, 2, 3);
const REFUSED: RGBColor = RGBColor(13, 14, 15);
const TROUBLE: RGBColor = RGBColor(16, 17, 18);
const INK: RGBColor = RGBColor(4, 5, 6);
const LINE: RGBColor = RGBColor(7, 8, 9);
const PLACEHOLDERS: [(&str, &str); 5] = [
    ("#010203", "var(--accent)"),
    ("#040506", "var(--soft)"),
    ("#070809", "var(--line)"),
    ("#0D0E0F", "var(--bar-caution)"),
    ("#101112", "var(--bar-danger)"),
];

/// A labelled column. Refused and failed visits are separate parts of it.
pub(crate) struct Column {
    pub(crate) label: String,
    pub(crate) value: u64,
    pub(crate) refused: u64,
    pub(crate) troubled: u64,
}

/// Columns side by side; `None` for empty data.
pub(crate) fn columns(series: &[Column]) -> Option<String> {
    let most = series.iter().map(|column| column.value).max().filter(|most| *most > 0)?;
    themed(|svg| draw_columns(svg, series, most))
}

/// The SVG with the colours of the page.
fn themed(draw: impl FnOnce(&mut String) -> Result<(), Box<dyn std::error::Error>>) -> Option<String> {
    let mut svg = String::new();
    draw(&mut svg).inspect_err(|error| tracing::error!(%error, "a chart failed")).ok()?;
    let themed =
        PLACEHOLDERS.iter().fold(svg, |svg, (placeholder, variable)| svg.replace(placeholder, variable));
    // Scales with the page; the table next to it contains the values.
    Some(themed.replacen("<svg ", "<svg class=\"chart\" aria-hidden=\"true\" ", 1))
}

/// The height of a column in one layer.
type Height = fn(&Column) -> u64;

fn draw_columns(svg: &mut String, series: &[Column], most: u64) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, COLUMNS_SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .x_label_area_size(LABEL_HEIGHT)
        .y_label_area_size(LABEL_WIDTH)
        .margin(4)
        .build_cartesian_2d((0..series.len().saturating_sub(1)).into_segmented(), 0..most)?;
    let label = |at: &SegmentValue<usize>| match at {
        SegmentValue::CenterOf(index) | SegmentValue::Exact(index) => {
            series.get(*index).map(|column| column.label.clone()).unwrap_or_default()
        }
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(series.len().min(LABELS_MAX))
        .y_labels(3)
        .x_label_formatter(&label)
        .axis_style(LINE)
        .bold_line_style(LINE)
        .light_line_style(TRANSPARENT)
        .label_style(FONT.into_font().color(&INK))
        .draw()?;
    // Each layer covers the lower part of the one before.
    let layers: [(RGBColor, Height); 3] = [
        (BAR, |column| column.value),
        (REFUSED, |column| if column.refused > 0 { column.refused + column.troubled } else { 0 }),
        (TROUBLE, |column| column.troubled),
    ];
    for (colour, height) in layers {
        let bars = series.iter().enumerate().map(|(index, column)| (index, height(column)));
        let bars = bars.filter(|(_, height)| *height > 0);
        chart.draw_series(Histogram::vertical(&chart).style(colour.filled()).margin(1).data(bars))?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_has_one_bar_per_value_and_no_inline_colours() {
        let column = |hour| Column {
            label: format!("{hour}:00"),
            value: hour,
            refused: u64::from(hour > 21),
            troubled: hour / 23,
        };
        let series: Vec<Column> = (0..24).map(column).collect();
        let svg = columns(&series).unwrap();
        assert!(svg.starts_with("<svg class=\"chart\""), "{svg}");
        assert_eq!(svg.matches("fill=\"var(--accent)\"").count(), 23, "none for zero");
        assert_eq!(svg.matches("fill=\"var(--bar-caution)\"").count(), 2);
        assert_eq!(svg.matches("fill=\"var(--bar-danger)\"").count(), 1);
        assert!(!svg.contains("fill=\"#0"), "{svg}");
        assert!(!svg.contains("style="), "the page's policy forbids inline styles");
    }

    #[test]
    fn empty_data_draws_no_chart() {
        assert_eq!(columns(&[]), None);
        let empty = Column { label: "now".to_owned(), value: 0, refused: 0, troubled: 0 };
        assert_eq!(columns(&[empty]), None);
    }
}
