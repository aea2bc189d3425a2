//! Lists the migrations of each database for `schema::migrator`: `OUT_DIR/DATABASE.rs` is an array of version, description and SQL.

use std::fs;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    for database in ["postgres", "sqlite"] {
        let list = migrations(&Path::new("../../migrations").join(database));
        fs::write(Path::new(&out).join(database).with_extension("rs"), list).expect("OUT_DIR can be written");
    }
}

/// The source of the array. A file is named by its version and its description: `0001_first.sql`.
fn migrations(folder: &Path) -> String {
    let folder = folder.canonicalize().expect("the migrations are beside the crates");
    let entries = fs::read_dir(&folder).expect("the folder of migrations can be read");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let entry = |file: &Path| {
        let name = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".sql"));
        let (version, description) =
            name.and_then(|name| name.split_once('_')).expect("VERSION_DESCRIPTION.sql");
        let version: i64 = version.parse().expect("the version is a number");
        let description = description.replace('_', " ");
        let file = file.to_str().expect("a path in UTF-8");
        format!("    ({version}, {description:?}, include_str!({file:?})),\n")
    };
    format!("[\n{}]\n", files.iter().map(|file| entry(file)).collect::<String>())
}
