//! A web on which one site in a hundred has manifests, at the paths at which counted sites publish.
//!
//! The count (`shares.txt` of the path table) lists sets of paths with the number of sites that have them. Every hundredth site of the web
//! is one of the counted sites, and a web of [`SITES`] sites contains each of them once. Nothing is random.

use crate::{Answer, Host};

const SHARES: &str = include_str!("../../policy/src/plan/shares.txt");
/// One in this many sites has manifests.
pub const SITES_PER_DECLARING: usize = 100;
/// Number of sites of a web that contains each counted site once.
pub const SITES: usize = 89 * SITES_PER_DECLARING;

/// The paths at which each counted site publishes.
fn counted() -> Vec<Vec<&'static str>> {
    let lines = SHARES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'));
    lines
        .flat_map(|(sites, paths)| {
            let paths: Vec<&str> = paths.split(' ').collect();
            std::iter::repeat_n(paths, sites.parse().unwrap_or_default())
        })
        .collect()
}

/// The paths at which each site of a web publishes; empty for sites without manifests.
pub fn paths(sites: usize) -> impl Iterator<Item = Vec<&'static str>> {
    let counted = counted();
    (0..sites).map(move |site| match (site % SITES_PER_DECLARING, counted.len()) {
        (0, 1..) => counted[site / SITES_PER_DECLARING % counted.len()].clone(),
        _ => Vec::new(),
    })
}

/// A site that publishes at these paths, a different manifest at each, and answers 404 everywhere else.
pub fn host(name: &str, paths: &[&str]) -> Host {
    paths.iter().enumerate().fold(Host::new(name), |host, (number, path)| {
        let manifest = format!(
            r#"{{"awp_version":"0.1","domain":"{name}","intent":"Sell books","actions":[
                {{"id":"buy_book_{number}","description":"Buy a book","method":"POST","endpoint":"/api/books"}}]}}"#
        );
        host.route(path, Answer::json(manifest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counted_site_appears_once_and_one_site_in_a_hundred_has_manifests() {
        let declaring = paths(SITES).filter(|paths| !paths.is_empty()).count();
        assert_eq!((declaring, counted().len()), (89, 89));
        assert_eq!(declaring * SITES_PER_DECLARING, SITES);
        let files: usize = paths(SITES).map(|paths| paths.len()).sum();
        assert_eq!(files, 212);
        assert_eq!(paths(2 * SITES).map(|paths| paths.len()).sum::<usize>(), 2 * files);
    }
}
