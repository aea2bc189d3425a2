//! One visit to one site.
mod html;
