//! Skills, prompts and services that the sentences of a text name: `(MCP tool get_brief; skill fetch-brief)`, `Call prompt
//! "discover_rooms"`, `6 callable services (find_room, book_room)`.

use crate::draft::{self, Draft};
use crate::format::mcp;
use crate::model::CapabilityKind;

/// Maximum number of skills and of prompts of one text that are read.
const NAMED_MAX: usize = 50;
/// Maximum number of bytes of one name.
const NAME_BYTES_MAX: usize = 80;

/// Collects the skills and prompts of a text, line by line.
#[derive(Debug, Default)]
pub(super) struct NamedSkills {
    /// Names with hyphens in brackets, with the text before the brackets, and whether the text calls one of them a skill.
    skills: Vec<(String, Option<String>)>,
    is_of_skills: bool,
    prompts: Vec<String>,
    services: Vec<String>,
}

impl NamedSkills {
    /// Reads one part of the brackets at the end of an item.
    pub(super) fn read_part(&mut self, part: &str, description: Option<&String>) {
        let led = part.strip_prefix("skill ");
        let name = led.unwrap_or(part).trim_matches(['`', '"', ' ']);
        let is_new = || self.skills.iter().all(|(known, _)| known != name);
        if is_name(name) && name.contains('-') && self.skills.len() < NAMED_MAX && is_new() {
            self.is_of_skills |= led.is_some();
            self.skills.push((name.to_owned(), description.cloned()));
        }
    }

    /// Reads the names in brackets behind a word for what they name: `6 callable services (find_room, book_room)`.
    pub(super) fn read_services(&mut self, before: &str, listed: &str) {
        let kind = before.split_whitespace().next_back().unwrap_or_default();
        if !matches!(kind, "services" | "functions" | "commands" | "skills" | "actions") {
            return;
        }
        let names: Vec<&str> =
            listed.split(',').take(NAMED_MAX).map(|name| name.trim_matches(['`', ' '])).collect();
        if names.len() > 1 && names.iter().all(|name| is_name(name) && name.contains('_')) {
            let new = names.into_iter().filter(|name| self.services.iter().all(|known| known != name));
            let new: Vec<String> = new.map(str::to_owned).collect();
            self.services.extend(new);
            self.services.truncate(NAMED_MAX);
        }
    }

    /// Reads the name in quotes after the word "prompt".
    pub(super) fn read_prompts(&mut self, line: &str) {
        for rest in line.split("prompt ").skip(1).take(NAMED_MAX) {
            let quoted = ['"', '`'].into_iter().find_map(|mark| rest.strip_prefix(mark)?.split_once(mark));
            let Some((name, _)) = quoted.filter(|(name, _)| is_name(name) && name.contains(['_', '-']))
            else {
                continue;
            };
            if self.prompts.len() < NAMED_MAX && !self.prompts.iter().any(|known| known == name) {
                self.prompts.push(name.to_owned());
            }
        }
    }

    /// Adds the skills, the services, and the prompts of the server.
    pub(super) fn finish(self, server: Option<&str>, draft: &mut Draft<'_>) {
        let is_listed = |name: &str, draft: &Draft<'_>| {
            draft.manifest.capabilities.iter().any(|known| known.native_id == name)
        };
        for (name, description) in self.skills.into_iter().filter(|_| self.is_of_skills) {
            if !is_listed(&name, draft) {
                let mut capability = draft.capability(CapabilityKind::Skill, &name, "", String::new());
                capability.description = draft::description(description.as_deref());
                draft.push(capability);
            }
        }
        for name in self.services {
            if !is_listed(&name, draft) {
                let capability = draft.capability(CapabilityKind::Action, &name, "", String::new());
                draft.push(capability);
            }
        }
        for name in self.prompts.into_iter().filter(|_| server.is_some()) {
            if !is_listed(&name, draft) {
                let mut capability = draft.capability(CapabilityKind::Content, &name, &name, String::new());
                capability.invocation = mcp::prompt_call(server, &name);
                draft.push(capability);
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_prompts_by_their_quoted_names() {
        let of = |line: &str| {
            let mut named = NamedSkills::default();
            named.read_prompts(line);
            named.prompts
        };
        assert_eq!(of("2. Discover: Call prompt \"find_rooms\" for all"), ["find_rooms"]);
        assert_eq!(of("use the prompt `find_rooms`"), ["find_rooms"]);
        assert!(of("Read the prompt \"Hello\" first, then prompt again").is_empty());
    }

    #[test]
    fn finds_services_in_brackets_behind_their_word() {
        let of = |before: &str, listed: &str| {
            let mut named = NamedSkills::default();
            named.read_services(before, listed);
            named.services
        };
        assert_eq!(of("- Rooms: 2 callable services ", "find_room, book_room"), ["find_room", "book_room"]);
        assert!(of("- Rooms: 2 sensors ", "free_rooms, booked_rooms").is_empty());
        assert!(of("Two services ", "find_room, and more").is_empty());
    }

    #[test]
    fn hyphenated_names_are_skills_if_one_is_called_a_skill() {
        let of = |parts: &[&str]| {
            let mut named = NamedSkills::default();
            for part in parts {
                named.read_part(part, None);
            }
            (named.skills.len(), named.is_of_skills)
        };
        assert_eq!(of(&["skill fetch-brief", "fetch-score"]), (2, true));
        assert_eq!(of(&["well-known"]), (1, false));
        assert_eq!(of(&["get_brief", "skill of"]), (0, false));
    }
}
