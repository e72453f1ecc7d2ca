//! Files of one crate do not import each other in a circle.
//!
//! The scan reads `use` declarations and paths that begin with `crate`, `super`, `self` or a file's own modules, and follows re-exports to the
//! file that defines a name. A re-export (`pub use`) is no import by itself, tests are not looked at, and a submodule may use what the file
//! of its module defines: it is a part of that module.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
};

/// A file of a crate.
struct File {
    path: String,
    /// Names of modules from the crate's root.
    module: Vec<String>,
    /// Names that it defines, with those of functions in blocks.
    defines: BTreeSet<String>,
    /// Paths that it brings into scope, by the names that it gives them; for `*` by none.
    uses: Vec<Use>,
    /// Paths elsewhere in its code.
    paths: Vec<Vec<String>>,
}

struct Use {
    path: Vec<String>,
    name: String,
    public: bool,
}

/// The files of a crate by their modules.
struct Crate {
    files: Vec<File>,
    by_module: HashMap<Vec<String>, usize>,
}

impl Crate {
    fn read(source: &Path) -> Self {
        let mut paths = Vec::new();
        walk(source, &mut paths);
        let read = |path: &PathBuf| File::read(source, path);
        let files: Vec<File> = paths.iter().map(read).collect();
        Self::of(files)
    }

    fn of(files: Vec<File>) -> Self {
        let numbered = files.iter().enumerate();
        let by_module = numbered.map(|(i, file)| (file.module.clone(), i)).collect();
        Self { files, by_module }
    }

    /// The file that defines what a path means in a file; none for what is not of this crate.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let mut module = self.files[from].module.clone();
        let mut rest = path;
        let mut began = false;
        while let [first, after @ ..] = rest {
            match first.as_str() {
                "crate" if !began => module.clear(),
                "self" if !began => {}
                "super" => {
                    module.pop()?;
                }
                _ => break,
            }
            began = true;
            rest = after;
        }
        let mut at = *self.by_module.get(&module)?;
        for (i, name) in rest.iter().enumerate() {
            module.push(name.clone());
            if let Some(&child) = self.by_module.get(&module) {
                at = child;
                continue;
            }
            if name == "*" || self.files[at].defines.contains(name) {
                return Some(at);
            }
            let found = self.through(at, name, depth);
            if i == 0 && !began && found.is_none() {
                return None;
            }
            return Some(found.unwrap_or(at));
        }
        (began || !rest.is_empty()).then_some(at)
    }

    /// The file that defines a name which a file has from another.
    fn through(&self, at: usize, name: &str, depth: usize) -> Option<usize> {
        if depth == 0 {
            return None;
        }
        let uses = &self.files[at].uses;
        let named = uses.iter().find(|it| it.name == name);
        if let Some(found) = named {
            let itself = found.path.len() == 1 && found.path[0] == name;
            return if itself {
                None
            } else {
                self.resolve(at, &found.path, depth - 1)
            };
        }
        let mut globs = uses.iter().filter(|it| it.name == "*");
        globs.find_map(|glob| {
            let of = self.resolve(at, &glob.path, depth - 1)?;
            let defines = of != at && self.files[of].defines.contains(name);
            if defines {
                Some(of)
            } else if of == at {
                None
            } else {
                self.through(of, name, depth - 1)
            }
        })
    }

    /// Which files each file imports, with the names.
    fn arrows(&self) -> Vec<BTreeMap<usize, BTreeSet<String>>> {
        let of_file = |(i, file): (usize, &File)| {
            let private = file.uses.iter().filter(|it| !it.public);
            let paths = private.map(|it| &it.path).chain(&file.paths);
            let mut arrows: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
            for path in paths {
                let Some(to) = self.resolve(i, path, 8) else {
                    continue;
                };
                if !file.module.starts_with(&self.files[to].module) {
                    arrows.entry(to).or_default().insert(path.join("::"));
                }
            }
            arrows
        };
        self.files.iter().enumerate().map(of_file).collect()
    }

    /// Sets of files that all lead to each other, each with its arrows in words.
    fn circles(&self) -> Vec<(BTreeSet<String>, String)> {
        let arrows = self.arrows();
        let reach: Vec<BTreeSet<usize>> = (0..arrows.len())
            .map(|from| {
                let mut seen = BTreeSet::new();
                let mut next: Vec<usize> = arrows[from].keys().copied().collect();
                while let Some(at) = next.pop() {
                    if seen.insert(at) {
                        next.extend(arrows[at].keys());
                    }
                }
                seen
            })
            .collect();
        let mut circles = Vec::new();
        let mut done: BTreeSet<usize> = BTreeSet::new();
        for from in 0..arrows.len() {
            if !reach[from].contains(&from) || done.contains(&from) {
                continue;
            }
            let both = |to: &usize| reach[*to].contains(&from);
            let circle: BTreeSet<usize> = reach[from].iter().copied().filter(both).collect();
            done.extend(&circle);
            let mut words = String::new();
            for &a in &circle {
                for (b, names) in arrows[a].iter().filter(|(b, _)| circle.contains(b)) {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    let (a, b) = (&self.files[a].path, &self.files[*b].path);
                    words += &format!("  {a} -> {b}: {}\n", names.join(", "));
                }
            }
            let paths = circle.iter().map(|&i| self.files[i].path.clone());
            circles.push((paths.collect(), words));
        }
        circles
    }
}

impl File {
    fn read(source: &Path, path: &Path) -> Self {
        let relative = path.strip_prefix(source).expect("below its crate");
        let text = fs::read_to_string(path).expect("a readable source");
        Self::parse(&relative.display().to_string(), &text)
    }

    fn parse(path: &str, text: &str) -> Self {
        let stem = path.trim_end_matches(".rs");
        let mut module: Vec<String> = stem.split('/').map(str::to_owned).collect();
        if matches!(module.last().map(String::as_str), Some("mod"))
            || stem == "lib"
            || stem == "main"
        {
            module.pop();
        }
        let tokens = without_tests(&tokens(text));
        let mut file = Self {
            path: path.to_owned(),
            module,
            defines: BTreeSet::new(),
            uses: Vec::new(),
            paths: Vec::new(),
        };
        file.scan(&tokens);
        file
    }

    fn scan(&mut self, tokens: &[String]) {
        let mut children = BTreeSet::new();
        let mut i = 0;
        while i < tokens.len() {
            let token = tokens[i].as_str();
            let next = tokens.get(i + 1).map_or("", String::as_str);
            match token {
                "use" => {
                    let public = i > 0 && matches!(tokens[i - 1].as_str(), "pub" | ")");
                    let end = tokens[i..].iter().position(|it| it == ";");
                    let end = i + end.unwrap_or(tokens.len() - i);
                    // `impl Trait + use<'a>` is no declaration.
                    if next != "<" {
                        self.tree(&[], &tokens[i + 1..end], public);
                        i = end;
                    }
                }
                "mod" if tokens.get(i + 2).is_some_and(|it| it == ";") => {
                    children.insert(next.to_owned());
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union"
                | "mod" => {
                    self.defines.insert(next.to_owned());
                }
                "macro_rules" => {
                    self.defines.extend(tokens.get(i + 2).into_iter().cloned());
                }
                _ if next == "::" && (i == 0 || tokens[i - 1] != "::") => {
                    let mut path = vec![token.to_owned()];
                    let mut at = i + 1;
                    while tokens.get(at).is_some_and(|it| it == "::") {
                        match tokens.get(at + 1) {
                            Some(name) if is_name(name) => path.push(name.clone()),
                            _ => break,
                        }
                        at += 2;
                    }
                    self.paths.push(path);
                    i = at - 1;
                }
                _ => {}
            }
            i += 1;
        }
        let relative = ["crate", "super", "self"];
        self.paths
            .retain(|path| relative.contains(&&*path[0]) || children.contains(&path[0]));
    }

    /// Takes in a tree of a `use` declaration below a path.
    fn tree(&mut self, above: &[String], tokens: &[String], public: bool) {
        let mut path = above.to_vec();
        let mut alias = None;
        let mut i = 0;
        while i < tokens.len() {
            match tokens[i].as_str() {
                "{" => {
                    let inside = &tokens[i + 1..tokens.len() - 1];
                    let mut depth = 0;
                    for part in inside.split(|token| {
                        depth += i32::from(token == "{") - i32::from(token == "}");
                        depth == 0 && token == ","
                    }) {
                        if !part.is_empty() {
                            self.tree(&path, part, public);
                        }
                    }
                    return;
                }
                "as" => {
                    alias = tokens.get(i + 1).cloned();
                    break;
                }
                "::" => {}
                name => path.push(name.to_owned()),
            }
            i += 1;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(last) = path.last().cloned() {
            let name = alias.unwrap_or(last);
            self.uses.push(Use { path, name, public });
        }
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Names, `::`, and other characters one by one, without comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut tokens: Vec<String> = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        let begin = i;
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
        } else if c == '"' || (c == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'')) {
            let raw = tokens.last().is_some_and(|it| matches!(&**it, "r" | "br"));
            i += 1;
            while i < chars.len() && chars[i] != c {
                i += if chars[i] == '\\' && !raw { 2 } else { 1 };
            }
            i += 1;
        } else if c == 'r' && at(i + 1) == '#' && at(i + 2) == '"' {
            i += 3;
            while i < chars.len() && !(chars[i] == '"' && at(i + 1) == '#') {
                i += 1;
            }
            i += 2;
        } else if c.is_alphanumeric() || c == '_' {
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
            tokens.push(chars[begin..i].iter().collect());
        } else if c == ':' && at(i + 1) == ':' {
            tokens.push("::".to_owned());
            i += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(c.to_string());
            }
            i += 1;
        }
    }
    tokens
}

/// The tokens but those of items under `#[cfg(test)]`.
fn without_tests(tokens: &[String]) -> Vec<String> {
    const CFG: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut i = 0;
    while i < tokens.len() {
        if !tokens[i..].iter().map(String::as_str).take(7).eq(CFG) {
            kept.push(tokens[i].clone());
            i += 1;
            continue;
        }
        i += CFG.len();
        // The item ends with its block, or with a semicolon before any.
        let mut depth = 0;
        while i < tokens.len() {
            let token = tokens[i].as_str();
            i += 1;
            match token {
                "{" => depth += 1,
                "}" => depth -= 1,
                ";" if depth == 0 => break,
                _ => continue,
            }
            if depth == 0 {
                break;
            }
        }
    }
    kept
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let mut entries: Vec<PathBuf> = entries.map(|it| it.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, paths);
        } else if path.extension().is_some_and(|it| it == "rs") {
            paths.push(path);
        }
    }
}

#[test]
fn files_import_each_other_in_no_circle() {
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut folders: Vec<PathBuf> = fs::read_dir(crates)
        .expect("the crates")
        .map(|it| it.expect("an entry").path())
        .filter(|it| it.join("src").is_dir())
        .collect();
    folders.sort();
    assert!(folders.len() >= 10, "the workspace's crates");
    let mut wrong = String::new();
    for folder in folders {
        let name = folder.file_name().expect("a name").display().to_string();
        for (_, words) in Crate::read(&folder.join("src")).circles() {
            wrong += &format!("crates/{name}/src, files in a circle:\n{words}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn the_scan_follows_names_to_their_files() {
    let file = |path: &str, text: &str| File::parse(path, text);
    let circles = |files: Vec<File>| {
        let circles = Crate::of(files).circles().into_iter();
        let circles = circles.map(|(files, _)| files.into_iter().collect::<Vec<_>>().join(" "));
        circles.collect::<Vec<_>>()
    };
    let lib = || {
        file(
            "lib.rs",
            "mod a; mod b; pub use a::A; pub use b::{self, B as C};",
        )
    };
    let a = |text| file("a.rs", text);
    let b = |text| file("b/mod.rs", text);
    let straight = vec![lib(), a("use crate::C; struct A(C);"), b("pub struct B;")];
    assert!(circles(straight).is_empty());
    let through_root = vec![
        lib(),
        a("use crate::{x::Y, C}; pub struct A;"),
        b("pub struct B; fn f() -> super::A {}"),
    ];
    assert_eq!(circles(through_root), ["a.rs b/mod.rs"]);
    let in_tests = vec![
        lib(),
        a("use crate::C; pub struct A; // use crate::A"),
        b("pub struct B; #[cfg(test)] mod tests { use crate::A; }"),
    ];
    assert!(circles(in_tests).is_empty());
    let part = vec![
        file("lib.rs", "mod a; pub const N: usize = a::n();"),
        a("use super::N as M; pub fn n() {}"),
    ];
    assert!(circles(part).is_empty());
}
