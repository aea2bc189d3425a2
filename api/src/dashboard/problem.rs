//! The error page.

use askama::Template;

use super::frame::{Frame, Section};
use crate::problem::ProblemBody;

#[derive(Template)]
#[template(path = "problem.html")]
pub(crate) struct ProblemPage<'a> {
    frame: Frame,
    status: u16,
    title: &'a str,
    detail: &'a str,
    known: &'a [String],
}

impl<'a> ProblemPage<'a> {
    pub(crate) fn new(problem: &'a ProblemBody) -> Self {
        Self {
            frame: Frame::new(problem.title, Section::None),
            status: problem.status.as_u16(),
            title: problem.title,
            detail: &problem.detail,
            known: &problem.known,
        }
    }
}
