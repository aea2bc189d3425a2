//! The page that shows every component of the design system, for developers of the dashboard.

use askama::Template;
use manifest::model::Protocol;
use manifest::{Format, SafetyClass};

use super::card::{Mark, OWNER_MARK, endpoint_mark};
use super::frame::{Frame, Section};
use super::{icons, labels};
use crate::page_context::PageContext;

struct Icon {
    svg: &'static str,
    name: &'static str,
    class: &'static str,
}

#[derive(Template)]
#[template(path = "styleguide.html")]
pub(crate) struct StyleguidePage {
    frame: Frame,
    safety: Vec<Icon>,
    dialects: Vec<Icon>,
    sites: Vec<(String, &'static str)>,
    marks: Vec<Mark>,
}

pub(crate) fn page(context: &PageContext) -> StyleguidePage {
    let safety = |class: &SafetyClass| Icon {
        svg: icons::safety(*class),
        name: labels::safety(*class),
        class: class.as_str(),
    };
    let dialect =
        |format: &Format| Icon { svg: icons::format(*format), name: format.label(), class: "plain" };
    let sites = ["skyhop.example", "tavola.example", "oaklibrary.example", "voltgrid.example"];
    StyleguidePage {
        frame: Frame::new("Style guide", Section::None).at(context, "/styleguide").unlisted(),
        safety: SafetyClass::ALL.iter().map(safety).collect(),
        dialects: Format::ALL.iter().filter(|format| format.is_indexable()).map(dialect).collect(),
        marks: std::iter::once(OWNER_MARK)
            .chain(Protocol::ALL.iter().filter_map(|one| endpoint_mark(*one)))
            .collect(),
        sites: sites.map(|name| (icons::of_site(name, 48), name)).into(),
    }
}
