//! The modules of a crate in its source: files, names, and the paths that each file mentions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Attribute, ImplItem, Item, UseTree, Visibility};

/// A path in the code: `crate::a::B`.
pub(crate) type Segments = Vec<String>;

/// Maximum length of a chain of re-exports.
const HOPS_MAX: usize = 8;

/// The source of one crate without its tests.
pub(crate) struct Crate {
    /// Modules by their path; the path of the root is empty.
    pub(crate) modules: BTreeMap<Segments, Module>,
}

/// One module, in its own file or inside another.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    /// Names that `use` imports, including re-exports, with their paths as written.
    uses: Vec<(String, Segments)>,
    globs: Vec<Segments>,
    /// Names that items define.
    defined: BTreeSet<String>,
    /// Paths in the code outside `use`.
    mentioned: BTreeSet<Segments>,
    /// Every identifier, including those in `use`.
    pub(crate) words: BTreeSet<String>,
    /// `pub fn` and `pub const`, including items of inherent impls.
    pub(crate) public: Vec<String>,
}

impl Crate {
    /// Reads the source below a directory: the library, or the program if there is no library.
    pub(crate) fn read(src: &Path) -> Self {
        let root = ["lib.rs", "main.rs"].map(|name| src.join(name)).into_iter().find(|file| file.exists());
        let mut source = Self { modules: BTreeMap::new() };
        source.read_file(&root.expect("a crate has lib.rs or main.rs"), src, Vec::new());
        source
    }

    fn read_file(&mut self, file: &Path, children: &Path, path: Segments) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.read_items(parsed.items, file, children, path);
    }

    fn read_items(&mut self, items: Vec<Item>, file: &Path, children: &Path, path: Segments) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items.into_iter().filter(|item| !is_test(attributes(item))) {
            if let Item::Mod(child) = item {
                let name = child.ident.to_string();
                let path = [path.clone(), vec![name.clone()]].concat();
                module.defined.insert(name.clone());
                if let Some((_, items)) = child.content {
                    self.read_items(items, file, &children.join(&name), path);
                } else {
                    let (file, children) = file_of(&child.attrs, &name, file, children);
                    self.read_file(&file, &children, path);
                }
            } else {
                module.read_item(&item);
            }
        }
        self.modules.insert(path, module);
    }

    /// The modules that a module depends on. Re-exporting items of its submodules is not a dependency.
    pub(crate) fn dependencies(&self, path: &[String]) -> BTreeSet<Segments> {
        let module = &self.modules[path];
        let used = module.uses.iter().map(|(_, segments)| segments).chain(&module.globs);
        let used = used.filter_map(|segments| self.resolve(path, segments, 0));
        let used = used.filter(|target| !target.starts_with(path));
        let mentioned = module.mentioned.iter().filter_map(|segments| self.resolve(path, segments, 0));
        used.chain(mentioned).filter(|target| target != path).collect()
    }

    /// The module in which the item of a path is defined; `None` for items of other crates.
    fn resolve(&self, from: &[String], segments: &[String], hops: usize) -> Option<Segments> {
        let mut segments = segments.iter();
        let mut at = match segments.next()?.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => parent(from),
            first => {
                let child = [from, &[first.to_owned()]].concat();
                self.modules.contains_key(&child).then_some(child)?
            }
        };
        for (place, segment) in segments.clone().enumerate() {
            if segment == "super" {
                at = parent(&at);
                continue;
            }
            let child = [at.as_slice(), std::slice::from_ref(segment)].concat();
            if self.modules.contains_key(&child) {
                at = child;
                continue;
            }
            let module = self.modules.get(&at)?;
            if module.defined.contains(segment) || hops == HOPS_MAX {
                break;
            }
            let rest: Vec<String> = segments.clone().skip(place + 1).cloned().collect();
            let named = module.uses.iter().find(|(name, _)| name == segment).map(|(_, path)| path.clone());
            let through_globs = || {
                let modules = module.globs.iter().filter_map(|glob| self.resolve(&at, glob, hops + 1));
                let owner =
                    modules.into_iter().find(|owner| self.modules[owner].defined.contains(segment))?;
                Some([vec!["crate".to_owned()], owner, vec![segment.clone()]].concat())
            };
            return match named.or_else(through_globs) {
                Some(path) => self.resolve(&at, &[path, rest].concat(), hops + 1),
                None => Some(at),
            };
        }
        Some(at)
    }
}

impl Module {
    fn read_item(&mut self, item: &Item) {
        let tokens = item.to_token_stream();
        collect_words(tokens.clone(), &mut self.words);
        match item {
            Item::Use(item) => self.read_use(&item.tree, Vec::new()),
            other => {
                self.defined.extend(name_of(other));
                self.mentioned.extend(paths(tokens));
            }
        }
        match item {
            Item::Fn(item) if is_public(&item.vis) => self.public.push(item.sig.ident.to_string()),
            Item::Const(item) if is_public(&item.vis) => self.public.push(item.ident.to_string()),
            Item::Impl(item) if item.trait_.is_none() => {
                self.public.extend(item.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(item) if is_public(&item.vis) => Some(item.sig.ident.to_string()),
                    ImplItem::Const(item) if is_public(&item.vis) => Some(item.ident.to_string()),
                    _ => None,
                }));
            }
            _ => {}
        }
    }

    fn read_use(&mut self, tree: &UseTree, mut before: Segments) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.read_use(&path.tree, before);
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.uses.push((before.last().cloned().unwrap_or_default(), before));
            }
            UseTree::Name(name) => {
                before.push(name.ident.to_string());
                self.uses.push((name.ident.to_string(), before));
            }
            UseTree::Rename(name) => {
                before.push(name.ident.to_string());
                self.uses.push((name.rename.to_string(), before));
            }
            UseTree::Glob(_) => self.globs.push(before),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.read_use(tree, before.clone()));
            }
        }
    }
}

fn parent(path: &[String]) -> Segments {
    path.split_last().map(|(_, parent)| parent.to_vec()).unwrap_or_default()
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.to_token_stream().to_string().replace(' ', "");
        text == "cfg(test)"
    })
}

/// The file of a module, and the directory of its submodules.
fn file_of(attributes: &[Attribute], name: &str, file: &Path, children: &Path) -> (PathBuf, PathBuf) {
    if let Some(named) = path_attribute(attributes) {
        let named = file.with_file_name(named);
        let folder = named.parent().map(Path::to_owned).unwrap_or_default();
        return (named, folder);
    }
    let folder = children.join(name);
    let flat = children.join(format!("{name}.rs"));
    (if flat.exists() { flat } else { folder.join("mod.rs") }, folder)
}

/// The file in `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let value = attribute.meta.require_name_value().ok()?.value.to_token_stream().to_string();
    Some(value.trim_matches('"').to_owned())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(ident.to_string())
}

fn collect_words(tokens: TokenStream, words: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                words.insert(ident.to_string());
            }
            TokenTree::Group(group) => collect_words(group.stream(), words),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Every path `a::b::c` in tokens, including those in macros.
fn paths(tokens: TokenStream) -> BTreeSet<Segments> {
    let (mut found, mut path, mut colons) = (BTreeSet::new(), Segments::new(), 0);
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    found.insert(std::mem::take(&mut path));
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                found.insert(std::mem::take(&mut path));
                found.extend(paths(group.stream()));
                colons = 0;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {
                found.insert(std::mem::take(&mut path));
                colons = 0;
            }
        }
    }
    found.insert(path);
    found.into_iter().filter(|path| path.len() > 1).collect()
}
