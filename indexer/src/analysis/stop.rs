//! Words that are not searched for.
//!
//! Stop words are removed from capabilities and queries; they include words of polite conversation. Chat verbs such as `get` and `find`
//! have a low weight in queries with other words. They are not removed, because they are meaningful in the name of a capability.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

const STOP_WORDS: &str = "\
a about after all also am an and any are aren as at be because been before being both but by can could couldn did \
didn do does doesn doing don each either else etc ever few for from further had has hasn have haven having he her here \
hers him his how however i if in into is isn it its just know least let like looking maybe me more most much my \
myself need needs no nor not of off on once one only or other our ours out over own per perhaps please really same \
she should so some such than thank thanks that the their theirs them then there these they thing things this those \
through to too try trying under until up upon us use used using very via want wanted wants was we well were what \
when where whether which while who whom whose why will wish with within without won would you your yours yourself \
hello hi hey okay ok im ive id m s t";

const CHAT_VERBS: &str = "\
ask assist do find get give go got help interested curious wondering wonder make provide recommend retrieve \
fetch show see suggest take tell able possible currently planning plan working additionally furthermore moreover \
finally lastly first next again currently now today sure good great";

/// Chat verbs that may also name the wanted capability.
const TOPICAL: [&str; 8] = ["plan", "planning", "next", "first", "today", "suggest", "recommend", "assist"];

static STOP_SET: LazyLock<FxHashSet<&'static str>> = LazyLock::new(|| STOP_WORDS.split(' ').collect());
static CHAT_SET: LazyLock<FxHashSet<&'static str>> = LazyLock::new(|| CHAT_VERBS.split(' ').collect());

pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_SET.contains(word)
}

pub(crate) fn is_topical(word: &str) -> bool {
    TOPICAL.contains(&word)
}

pub(crate) fn is_chat_verb(word: &str) -> bool {
    CHAT_SET.contains(word)
}
