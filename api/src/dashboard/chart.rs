//! A series over time as SVG, in the colours of the page.
//!
//! The drawing library writes fixed colours; they are placeholders here, exchanged for the style sheet's variables, so
//! that one drawing serves the light and the dark theme. Its data stands in a table beside it.

use plotters::prelude::*;

const WIDTH: u32 = 720;
const HEIGHT: u32 = 200;
const LABEL_WIDTH: u32 = 44;
const LABEL_HEIGHT: u32 = 28;
/// Labels below the chart: as many as fit beside each other.
const LABELS_MAX: usize = 12;
const FONT: (&str, u32) = ("sans-serif", 12);
const BAR: RGBColor = RGBColor(1, 2, 3);
const INK: RGBColor = RGBColor(4, 5, 6);
const LINE: RGBColor = RGBColor(7, 8, 9);
const PLACEHOLDERS: [(&str, &str); 3] =
    [("#010203", "var(--accent)"), ("#040506", "var(--soft)"), ("#070809", "var(--line)")];

/// Bars side by side, each with its label; none where there is nothing to draw.
pub(crate) fn columns(series: &[(String, u64)]) -> Option<String> {
    let most = series.iter().map(|(_, value)| *value).max().filter(|most| *most > 0)?;
    let mut svg = String::new();
    draw(&mut svg, series, most).inspect_err(|error| tracing::error!(%error, "a chart failed")).ok()?;
    let themed =
        PLACEHOLDERS.iter().fold(svg, |svg, (placeholder, variable)| svg.replace(placeholder, variable));
    // scales with the page; what it shows is told by the table
    Some(themed.replacen("<svg ", "<svg class=\"chart\" aria-hidden=\"true\" ", 1))
}

fn draw(svg: &mut String, series: &[(String, u64)], most: u64) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, (WIDTH, HEIGHT)).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .x_label_area_size(LABEL_HEIGHT)
        .y_label_area_size(LABEL_WIDTH)
        .margin(8)
        .build_cartesian_2d((0..series.len().saturating_sub(1)).into_segmented(), 0..most)?;
    let label = |at: &SegmentValue<usize>| match at {
        SegmentValue::CenterOf(index) | SegmentValue::Exact(index) => {
            series.get(*index).map(|(label, _)| label.clone()).unwrap_or_default()
        }
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(series.len().min(LABELS_MAX))
        .y_labels(4)
        .x_label_formatter(&label)
        .axis_style(LINE)
        .bold_line_style(LINE)
        .light_line_style(TRANSPARENT)
        .label_style(FONT.into_font().color(&INK))
        .draw()?;
    let bars = series.iter().enumerate().map(|(index, (_, value))| (index, *value));
    chart.draw_series(Histogram::vertical(&chart).style(BAR.filled()).margin(2).data(bars))?;
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_bar_for_each_value_and_no_colour_of_its_own() {
        let series: Vec<(String, u64)> = (0..24).map(|hour| (format!("{hour}:00"), hour)).collect();
        let svg = columns(&series).unwrap();
        assert!(svg.starts_with("<svg class=\"chart\""), "{svg}");
        assert_eq!(svg.matches("fill=\"var(--accent)\"").count(), 24);
        assert!(!svg.contains("fill=\"#0"), "{svg}");
        assert!(!svg.contains("style="), "the page's policy forbids inline styles");
    }

    #[test]
    fn nothing_is_not_drawn() {
        assert_eq!(columns(&[]), None);
        assert_eq!(columns(&[("now".to_owned(), 0)]), None);
    }
}
