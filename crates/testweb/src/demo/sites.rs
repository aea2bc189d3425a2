//! The sites of the demo as one table. Their files are in `demo/`.

/// One site.
pub(super) struct Site {
    pub(super) domain: &'static str,
    pub(super) title: &'static str,
    pub(super) lead: &'static str,
    pub(super) files: &'static [File],
    pub(super) behaviour: Behaviour,
}

/// One file of a site.
pub(super) struct File {
    pub(super) path: &'static str,
    pub(super) media: &'static str,
    pub(super) body: &'static str,
}

/// The behaviour of a site.
pub(super) enum Behaviour {
    /// It serves its files.
    Open,
    /// It serves its files and this robots.txt.
    Robots(&'static str),
    /// It serves its files, but its robots.txt is unavailable.
    RobotsUnavailable,
    /// It redirects every path to this host, which serves the files.
    MovedTo(&'static str),
    /// It answers every path, including robots.txt, with this page.
    OnePageForAll(&'static str),
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";
const WOA: &str = "application/woa+json";
const OPENAPI: &str = "application/vnd.oai.openapi+json";
const A2A: &str = "application/a2a-agent-card+json";
const MCP_CARD: &str = "application/mcp-server-card+json";
const CATALOG: &str = "application/ai-catalog+json";

/// A file with the same path on the site as in the folder of the site.
macro_rules! file {
    ($folder:literal, $path:literal, $media:expr) => {
        File { path: $path, media: $media, body: include_str!(concat!("../../demo/", $folder, $path)) }
    };
}

/// A site that serves its files: domain, title, one sentence, and the files of its folder.
macro_rules! site {
    ($folder:literal, $domain:literal, $title:literal, $lead:literal, [$(($path:literal, $media:expr)),*]) => {
        site!($folder, $domain, $title, $lead, [$(($path, $media)),*], Behaviour::Open)
    };
    ($folder:literal, $domain:literal, $title:literal, $lead:literal, [$(($path:literal, $media:expr)),*], $behaviour:expr) => {
        Site {
            domain: $domain,
            title: $title,
            lead: $lead,
            files: &[$(file!($folder, $path, $media)),*],
            behaviour: $behaviour,
        }
    };
}

/// All sites: first those with valid declarations, then the others.
pub(super) const SITES: &[Site] = &[
    site!(
        "skyhop",
        "skyhop.example",
        "Skyhop Airlines",
        "Flights across Europe and North Africa.",
        [("/agent.json", JSON)]
    ),
    site!(
        "lindenhof",
        "lindenhof.example",
        "Hotel Lindenhof",
        "Forty rooms by the lake.",
        [("/agent.json", JSON)]
    ),
    site!(
        "claykiln",
        "claykiln.example",
        "Claykiln",
        "Hand-thrown mugs, bowls and vases.",
        [("/.well-known/agents.json", JSON), ("/.well-known/agents.txt", TEXT)]
    ),
    site!(
        "northstitch",
        "northstitch.example",
        "Northstitch",
        "Outdoor clothing made to be mended.",
        [("/.well-known/agent.json", JSON)]
    ),
    site!(
        "brightsmile",
        "brightsmile.example",
        "Brightsmile Dental",
        "Two dentists and a hygienist.",
        [("/.well-known/agent.json", JSON)]
    ),
    site!(
        "daybook",
        "daybook.example",
        "Daybook Calendar",
        "A calendar for families and teams.",
        [("/.well-known/agent.json", JSON)]
    ),
    site!(
        "skycast",
        "skycast.example",
        "Skycast",
        "Weather for any place on Earth.",
        [("/agent.json", JSON)]
    ),
    site!(
        "harbourbank",
        "harbourbank.example",
        "Harbour Bank",
        "A bank by the sea.",
        [("/.well-known/agent.json", JSON)]
    ),
    site!(
        "oaklibrary",
        "oaklibrary.example",
        "Oak Street Library",
        "Books, films and study rooms.",
        [("/.well-known/agents.json", JSON)]
    ),
    site!(
        "tramline",
        "tramline.example",
        "Tramline",
        "Trams, buses and ferries of the city.",
        [("/agent.json", JSON)]
    ),
    site!(
        "tavola",
        "tavola.example",
        "Tavola",
        "A restaurant with nine tables.",
        [("/.well-known/agent.json", JSON)]
    ),
    site!(
        "quickbite",
        "quickbite.example",
        "Quickbite",
        "Food from 300 kitchens by bicycle.",
        [("/.well-known/agents.json", JSON)]
    ),
    site!(
        "evergreen-insurance",
        "evergreen-insurance.example",
        "Evergreen Insurance",
        "Household, bicycle and travel insurance.",
        [("/.well-known/agent.json", JSON)]
    ),
    site!(
        "linguabridge",
        "linguabridge.example",
        "Linguabridge",
        "Translation between 41 languages.",
        [("/.well-known/woa.json", WOA)]
    ),
    site!(
        "brevity",
        "brevity.example",
        "Brevity",
        "Long documents made short.",
        [("/.well-known/woa.json", WOA)]
    ),
    site!(
        "patchwise",
        "patchwise.example",
        "Patchwise",
        "Code review that explains itself.",
        [("/.well-known/agent-card.json", A2A), ("/llms.txt", MARKDOWN)]
    ),
    site!(
        "wayfarer",
        "wayfarer.example",
        "Wayfarer",
        "Holidays planned day by day.",
        [("/.well-known/agent-card.json", JSON)]
    ),
    site!(
        "feldspar",
        "feldspar.example",
        "Feldspar",
        "A reference of minerals.",
        [("/.well-known/mcp/server-card.json", MCP_CARD)]
    ),
    site!(
        "museum-of-tides",
        "museum-of-tides.example",
        "Museum of Tides",
        "The sea, its ships and its maps.",
        [("/.well-known/agent-manifest.json", JSON), ("/.well-known/openapi.json", OPENAPI)]
    ),
    site!(
        "voltgrid",
        "voltgrid.example",
        "Voltgrid",
        "Electricity of the city.",
        [("/.well-known/llms.txt", JSON), ("/openapi.json", OPENAPI)]
    ),
    site!(
        "hirewell",
        "hirewell.example",
        "Hirewell",
        "Open positions at mid-sized companies.",
        [("/agent.json", JSON)]
    ),
    site!(
        "meddirect",
        "meddirect.example",
        "Meddirect",
        "Doctors by video.",
        [("/.well-known/agent.json", JSON)]
    ),
    site!(
        "encore-tickets",
        "encore-tickets.example",
        "Encore Tickets",
        "Concerts, theatre and sport.",
        [("/.well-known/agents.json", JSON)]
    ),
    site!(
        "morningpost",
        "morningpost.example",
        "The Morning Post",
        "Every article since 1887.",
        [("/.well-known/agent.json", JSON)]
    ),
    site!("parcelpath", "parcelpath.example", "Parcelpath", "Parcels on their way.", [("/agent.json", JSON)]),
    site!(
        "agenthub",
        "agenthub.example",
        "Agenthub",
        "A catalogue of agents.",
        [("/.well-known/ai-catalog.json", CATALOG), ("/.well-known/ard.json", CATALOG)]
    ),
    site!(
        "roomkeeper",
        "roomkeeper.example",
        "Roomkeeper",
        "Meeting rooms by the hour, from a small machine.",
        [("/agent.json", JSON)],
        Behaviour::Robots(include_str!("../../demo/roomkeeper/robots.txt"))
    ),
    site!(
        "gardenia",
        "gardenia.example",
        "Gardenia",
        "Plants, seeds and advice.",
        [("/.well-known/agents.json", JSON)],
        Behaviour::MovedTo("www.gardenia.example")
    ),
    site!(
        "quillmoor",
        "quillmoor.example",
        "Quillmoor Letterpress",
        "Cards, posters and small books.",
        [("/llms.txt", MARKDOWN)]
    ),
    site!(
        "halfbaked",
        "halfbaked.example",
        "Half Baked",
        "A bakery whose manifest needs more time.",
        [("/agent.json", JSON)]
    ),
    site!(
        "doublequote",
        "doublequote.example",
        "Double Quote Bicycles",
        "A manifest that was quoted twice.",
        [("/agent.json", JSON)]
    ),
    site!(
        "starterkit",
        "starterkit.test",
        "My Awesome Site",
        "A template with its placeholders left in.",
        [("/.well-known/agent.json", JSON)]
    ),
    site!(
        "single-page",
        "single-page.test",
        "Fernweh Studio",
        "One page for every path.",
        [],
        Behaviour::OnePageForAll(include_str!("../../demo/single-page/index.html"))
    ),
    site!(
        "keepout",
        "keepout.example",
        "Keep Out",
        "A diary that is not for machines.",
        [("/agent.json", JSON)],
        Behaviour::Robots(include_str!("../../demo/keepout/robots.txt"))
    ),
    site!(
        "tavola",
        "drowsy.example",
        "Drowsy",
        "A site whose robots.txt is always asleep.",
        [("/.well-known/agent.json", JSON)],
        Behaviour::RobotsUnavailable
    ),
    site!(
        "trickster",
        "trickster.example",
        "Trickster Cards",
        "Greeting cards with strings attached.",
        [("/agent.json", JSON)]
    ),
];
