//! Icons as inline SVG: of dialects, of safety classes, of kinds of changes, and the generated icon of a site.
//!
//! Each icon is next to a text, so all icons are hidden from screen readers. No image is loaded from a publisher.

use manifest::model::Protocol;
use manifest::{Format, SafetyClass};
use sha2::{Digest, Sha256};

macro_rules! icon {
    ($($shape:literal),+) => {
        concat!("<svg class=\"i\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">", $($shape),+, "</svg>")
    };
}

const BRACES: &str = icon!(
    "<path d='M6 2.5C4 2.5 4.6 5 4.2 6.6 4 7.4 3 8 2.5 8c.5 0 1.5.6 1.7 1.400C4.6 11 4 13.5 6 13.500M10 2.500c2 0 1.4 2.5 1.8 4.1.2.8 1.2 1.4 1.7 1.4-.5 0-1.5.6-1.7 1.4-.4 1.6.2 4.1-1.8 4.1'/>"
);
const NODES: &str =
    icon!("<circle cx='3.8' cy='8' r='2.2'/><circle cx='12.2' cy='8' r='2.2'/><path d='M6 8h4'/>");
const WEB: &str =
    icon!("<circle cx='8' cy='8' r='6'/><path d='M2 8h12M8 2c2.2 2 2.2 10 0 12M8 2c-2.2 2-2.2 10 0 12'/>");
const LINES: &str = icon!("<path d='M3 3.500h10M3 6.500h10M3 9.500h7M3 12.500h5'/>");
const CATALOG: &str = icon!(
    "<rect x='2.5' y='2.5' width='4.5' height='4.5' rx='1'/><rect x='9' y='2.5' width='4.5' height='4.5' rx='1'/><rect x='2.5' y='9' width='4.5' height='4.5' rx='1'/><rect x='9' y='9' width='4.5' height='4.5' rx='1'/>"
);
const SHIELD: &str = icon!("<path d='M8 2l5 1.800v3.700c0 3.2-2.2 5.5-5 6.5-2.8-1-5-3.3-5-6.500V3.800z'/>");
const ARROWS: &str = icon!("<path d='M2.5 5.500h9M9 3l2.5 2.500L9 8M13.5 10.500h-9M7 8l-2.5 2.500L7 13'/>");
const PLUG: &str = icon!("<path d='M6 2v3M10 2v3M4.5 5h7v2.500a3.5 3.5 0 01-7 0zM8 11v3'/>");
const EYE: &str = icon!(
    "<path d='M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8z'/><circle cx='8' cy='8' r='1.9'/>"
);
const PENCIL: &str = icon!("<path d='M3 13l.6-2.7 7.3-7.3 2.1 2.1-7.3 7.300zM9.5 4.400l2.1 2.1'/>");
const WARNING: &str = icon!("<path d='M8 2.500l6 10.500H2zM8 6.500v3M8 11.2v.1'/>");
const STOP: &str = icon!("<path d='M5.5 2h5L14 5.500v5L10.5 14h-5L2 10.500v-5zM8 5v3.500M8 10.800v.1'/>");
const QUESTION: &str = icon!(
    "<circle cx='8' cy='8' r='6'/><path d='M6.3 6.300a1.8 1.8 0 113 1.400c-.8.6-1.3.9-1.3 1.700M8 11.500v.1'/>"
);
const PLUS: &str = icon!("<path d='M8 3v10M3 8h10'/>");
const MINUS: &str = icon!("<path d='M3 8h10'/>");
pub(crate) const SEARCH: &str = icon!("<circle cx='7' cy='7' r='4.5'/><path d='M10.5 10.500L14 14'/>");
pub(crate) const KEY: &str = icon!("<circle cx='5' cy='11' r='2.8'/><path d='M7 9l6-6M10.5 5.500l2 2'/>");
pub(crate) const FUNNEL: &str = icon!("<path d='M2.5 3.500h11L9.5 8.500v4L6.5 13.500v-5z'/>");

/// The icon of a safety class.
pub(crate) const fn safety(class: SafetyClass) -> &'static str {
    match class {
        SafetyClass::Read => EYE,
        SafetyClass::Write => PENCIL,
        SafetyClass::Destructive => WARNING,
        SafetyClass::Irreversible => STOP,
        SafetyClass::Unknown => QUESTION,
    }
}

/// The family of a dialect: manifests of actions, agents, catalogs, interfaces, texts.
pub(crate) const fn format(format: Format) -> &'static str {
    match format {
        Format::Atp | Format::Ahp => ARROWS,
        Format::Woa => WEB,
        Format::A2a => NODES,
        Format::Arws => SHIELD,
        Format::Ard | Format::ApiCatalog => CATALOG,
        Format::AgentsTxt | Format::LlmsTxt => LINES,
        Format::McpCard | Format::McpRegistry | Format::McpFreeform | Format::McpConfig | Format::WebMcp => {
            PLUG
        }
        _ => BRACES,
    }
}

/// The icon of an endpoint for agents.
pub(crate) const fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Mcp => PLUG,
        Protocol::A2a => NODES,
        _ => ARROWS,
    }
}

/// A kind of change.
pub(crate) fn change(class: &str) -> &'static str {
    match class {
        "found" => PLUS,
        "gone" => MINUS,
        _ => ARROWS,
    }
}

/// Colours of generated icons, each dark enough for a white letter.
const HUES: [&str; 10] = [
    "#0b6b62", "#1d5fa8", "#7a3fa0", "#a83265", "#a3471b", "#5c6a12", "#2f6b2f", "#3f4fb5", "#8a3b3b",
    "#44586b",
];

/// The icon of a site, generated from its name: the first letter on a pattern that is derived from the name.
pub(crate) fn of_site(name: &str, pixels: u16) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let byte = |index: usize| digest.get(index).copied().unwrap_or_default();
    let colour = HUES.get(usize::from(byte(0)) % HUES.len()).copied().unwrap_or(HUES[0]);
    let letter = name.chars().find(|c| c.is_alphanumeric()).unwrap_or('?').to_uppercase();
    let (x, y, r) = (byte(1) % 40, byte(2) % 40, 10 + byte(3) % 12);
    let (turn, step) = (u32::from(byte(4)) * 360 / 256, 6 + byte(5) % 10);
    format!(
        "<svg class=\"identicon\" width=\"{pixels}\" height=\"{pixels}\" viewBox=\"0 0 40 40\" aria-hidden=\"true\">\
         <rect width=\"40\" height=\"40\" fill=\"{colour}\"/>\
         <g fill=\"#fff\" fill-opacity=\".16\"><circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\"/>\
         <rect x=\"-20\" y=\"{step}\" width=\"80\" height=\"{step}\" transform=\"rotate({turn} 20 20)\"/></g>\
         <text x=\"20\" y=\"27\" text-anchor=\"middle\" font-family=\"sans-serif\" font-weight=\"700\" font-size=\"20\" fill=\"#fff\">{letter}</text></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_icon_depends_only_on_the_name_and_shows_a_letter_or_digit() {
        assert_eq!(of_site("skyhop.example", 48), of_site("skyhop.example", 48));
        assert_ne!(of_site("skyhop.example", 48), of_site("tavola.example", 48));
        assert!(of_site("<b>", 48).contains(">B</text>"), "only a letter or a digit is shown");
        assert!(!of_site("x", 48).contains("style="));
    }
}
