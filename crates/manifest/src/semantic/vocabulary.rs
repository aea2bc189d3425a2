//! The types that may be inferred: first those of ATP's standard namespaces, then further types that published manifests need.
//!
//! An entry names the words of a type in groups: a verb and an object in most. Specific entries precede general ones; a type has several
//! entries if some of its words need evidence that others do not need.

/// A type and the words that imply it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) confidence: f64,
    /// Groups of alternative words, which are separated by spaces. A group that begins with `?` is optional; `*` matches any words after
    /// the first.
    pub(super) groups: &'static [&'static str],
    /// One of these words must occur in the capability or in the site's texts about itself, for ambiguous words such as `order`.
    pub(super) within: &'static str,
    /// None of these words may occur in the capability or in the site's texts about itself.
    pub(super) unless: &'static str,
}

impl Entry {
    /// The groups that must be matched, as bits.
    pub(super) fn required(&self) -> u8 {
        let groups = self.groups.iter().enumerate();
        let required = groups.filter(|(_, words)| !words.starts_with(['?', '*']));
        required.fold(0, |bits, (group, _)| bits | 1 << group)
    }

    /// Whether the verb determines the type for any object.
    pub(super) fn takes_any_object(&self) -> bool {
        self.groups.contains(&"*")
    }

    /// The groups of words as text for people: `book or reserve; and flight`.
    pub(super) fn described(&self) -> String {
        let listed = |words: &str| words.split_whitespace().collect::<Vec<_>>().join(" or ");
        let groups: Vec<String> = self
            .groups
            .iter()
            .map(|words| match words.strip_prefix('?') {
                Some(words) => format!("optionally {}", listed(words)),
                None if *words == "*" => "any object".to_owned(),
                None => listed(words),
            })
            .collect();
        let within =
            if self.within.is_empty() { String::new() } else { format!("; near {}", listed(self.within)) };
        let unless = if self.unless.is_empty() {
            String::new()
        } else {
            format!("; not near {}", listed(self.unless))
        };
        format!("{}{within}{unless}", groups.join("; and "))
    }
}

/// Declares the entries, one row each: type, confidence, groups, and where needed the evidence for and against it.
macro_rules! vocabulary {
    ($($name:literal $confidence:literal: $($words:expr),+ $(; within $within:expr)? $(; unless $unless:expr)?;)*) => {
        pub(super) const VOCABULARY: &[Entry] = &[$(Entry {
            name: $name,
            confidence: $confidence,
            groups: &[$($words),+],
            within: concat!("" $(, $within)?),
            unless: concat!("" $(, $unless)?),
        }),*];
    };
}

/// Words that do not affect the meaning of a name and have none on their own.
pub(super) const NEUTRAL: &str = "a an the my your our their this that its to in into of on all any one single multiple batch bulk \
    existing specific given current available new public api tool flow action endpoint operation capability skill \
    detail details info information id now v1 v2 v3";

/// Words that end the leading phrase of a description.
pub(super) const BOUNDARY: &str = "for from with by at which using via and or as per between based where when across \
    after before including through within so whose";

/// Pairs of words that are read as one word.
pub(super) const COMPOUNDS: [(&str, &str, &str); 6] = [
    ("check", "in", "checkin"),
    ("check", "out", "checkout"),
    ("log", "in", "login"),
    ("sign", "in", "signin"),
    ("sign", "up", "signup"),
    ("log", "out", "logout"),
];

macro_rules! words {
    ($($name:ident $words:literal;)*) => { $(macro_rules! $name { () => { $words } })* };
}

words! {
    find "search find list browse lookup query discover explore get fetch show compare";
    book "book booking reserve reservation buy purchase order";
    change "update edit change modify set patch manage rename";
    drop "delete remove cancel drop clear";
    read "get read view show fetch retrieve detail lookup check";
    flight "flight airfare airline";
    lodging_words "hotel hostel lodging accommodation resort inn motel guest night vacation";
    dining_words "restaurant dining dinner cafe bistro cuisine menu brunch chef";
    shop_words "shop store product buy cart merchant merchandise commerce ecommerce seller retail marketplace brand \
        checkout shipping storefront purchase";
    trading_words "trading broker brokerage futures forex equities securities margin options hedge position swap perpetual";
    finance_words "trading finance financial stock crypto cryptocurrency currency forex exchange blockchain defi solana \
        ethereum bitcoin ticker equity dex";
    job_words "career hiring hire employer employment recruiter recruiting vacancy salary candidate resume freelance gig \
        earn earning";
    payment_words "payment wallet bank card merchant charge balance finance spending invoice billing banking crypto usdc \
        money credit blockchain";
    support_words "support helpdesk customer complaint helpline";
    calendar_words "calendar appointment meeting meetup conference concert venue festival attendee invite webinar";
    booking_words "appointment booking calendar slot schedule reservation meeting consultation";
    blog_words "blog article wiki news writing cms newsletter editorial";
    repository_words "repository repo codebase git github gitlab";
    map_words "map driving distance walking transit navigation traffic destination latitude geocode city nearby";
    document "file document pdf";
}

vocabulary! {
    "travel:flight-booking" 0.9: book!(), flight!();
    "travel:flight-search" 0.88: find!(), flight!(), "?offer fare ticket";
    "travel:flight-status" 0.91: "status track delay", flight!(), "?get check view";
    "travel:flight-cancel" 0.92: "cancel refund", "flight ticket booking trip"; within "flight airline airport";
    "travel:check-in" 0.9: "checkin", "?flight online passenger boarding"; within "flight airline boarding passenger hotel";
    "travel:seat-selection" 0.85: "seat", "select choose assign change pick";
    "travel:hotel-booking" 0.9: book!(), "hotel hostel lodging accommodation", "?room stay";
    "travel:hotel-booking" 0.89: "book reserve booking reservation", "room stay apartment"; within lodging_words!();
    "travel:hotel-search" 0.88: find!(), "hotel hostel lodging accommodation", "?room stay";
    "travel:hotel-search" 0.87: "search find list browse", "room stay apartment"; within lodging_words!();
    "travel:restaurant-booking" 0.9: "book reserve booking reservation make create", "restaurant dining dinner table", "?reservation";
        within dining_words!();
    "travel:restaurant-search" 0.85: "search find list browse discover", "restaurant cafe", "?nearby";
    "travel:train-booking" 0.9: book!(), "train rail", "?ticket";
    "travel:train-search" 0.85: "search find list browse lookup", "train"; unless "model training dataset";
    "travel:car-rental" 0.85: "rent rental hire book", "car vehicle van";
    "travel:ride-request" 0.85: "request book order hail", "ride taxi cab";
    "travel:trip-plan" 0.8: "plan planner create", "trip itinerary travel";
    "commerce:cart-add" 0.92: "add put", "cart basket", "?item product";
    "commerce:cart-remove" 0.92: drop!(), "cart basket", "?item product";
    "commerce:cart-update" 0.91: change!(), "cart basket", "?item product quantity";
    "commerce:cart-view" 0.85: "get view show read list", "cart basket", "?item content";
    "commerce:checkout" 0.9: "checkout", "?create start begin complete session cart url proceed order";
    "commerce:order-create" 0.88: "create place submit make start", "order purchase"; unless trading_words!();
    "commerce:order-create" 0.85: "buy purchase", "?product item good quick instant part digital"; unless trading_words!();
    "commerce:order-create" 0.85: "order", "part product item food meal drink"; unless trading_words!();
    "commerce:order-create" 0.85: "complete finalize", "purchase order"; unless trading_words!();
    "commerce:order-cancel" 0.9: "cancel", "order purchase"; unless trading_words!();
    "commerce:order-cancel" 0.88: "return", "order purchase item product"; within shop_words!();
    "commerce:order-status" 0.9: "status track tracking", "order shipment parcel delivery", "?get check view shipping";
        unless trading_words!();
    "commerce:order-status" 0.84: read!(), "order shipment parcel"; within shop_words!(); unless trading_words!();
    "commerce:product-search" 0.87: "search find browse list query discover filter", "product merchandise", "?catalog";
    "commerce:product-search" 0.87: "get fetch show view", "products";
    "commerce:product-search" 0.85: "search find browse browsing list query discover filter", "catalog catalogue listing item offer sku";
        within shop_words!(); unless "rfc linkset metadata dataset registry";
    "commerce:product-detail" 0.86: "get read view show detail fetch lookup", "product";
    "commerce:product-detail" 0.84: "get read view show fetch lookup", "sku item"; within "shop store cart merchant ecommerce retail";
    "commerce:product-recommend" 0.85: "recommend recommendation suggest", "product gift";
    "commerce:quote" 0.85: "request submit get", "quote estimate", "?service shipping price job insurance";
        within "shipping freight insurance plumbing repair contractor customer moving renovation installation delivery";
        unless "stock ticker crypto trading swap token";
    "commerce:review" 0.82: "review rating", "get list submit post write read", "?product customer";
        within "product customer restaurant hotel shop store business"; unless "code pull paper contract";
    "commerce:subscription" 0.82: "subscription", "create update cancel manage list upgrade get retrieve", "?customer";
        unless "webhook newsletter topic channel push alert event";
    "payments:pay" 0.88: "pay", "?invoice bill payment";
    "payments:pay" 0.86: "make send create submit process initiate", "payment"; unless "method link terminal";
    "payments:pay" 0.85: "charge", "card customer";
    "payments:transfer" 0.88: "transfer send wire", "fund money usdc credit coin token"; within payment_words!();
    "payments:balance" 0.88: "balance", "?get check read view show account wallet credit usdc token fetch";
        unless "sheet chemical load";
    "payments:transaction-list" 0.87: "list search history", "transaction payment invoice"; within payment_words!();
        unless "acquisition merger deal";
    "payments:transaction-list" 0.87: "get fetch show view", "transactions payments invoices"; within payment_words!();
        unless "acquisition merger deal";
    "payments:refund" 0.88: "refund", "?create issue request process payment order submit";
    "health:appointment-create" 0.92: "book schedule create make", "appointment visit";
        within "doctor clinic dentist patient medical physician dental";
    "scheduling:appointment-cancel" 0.9: "cancel delete remove", "appointment meeting";
    "scheduling:appointment-cancel" 0.89: drop!(), "event"; within "calendar meeting attendee invite";
    "scheduling:appointment-create" 0.88: "book booking create schedule add reserve make new", "appointment meeting consultation demo slot";
    "scheduling:appointment-create" 0.86: "create add schedule", "event"; within "calendar meeting attendee invite";
    "scheduling:availability-check" 0.88: "availability", "?check get find show view list slot calendar"; within booking_words!();
    "scheduling:availability-check" 0.87: "available free open", "slot"; within booking_words!();
    "scheduling:event-search" 0.85: "search find list browse get discover", "event", "?calendar upcoming";
        within calendar_words!(); unless "webhook telemetry log tracking analytics";
    "communication:message-send" 0.88: "send post reply", "message email mail sms dm notification", "?ephemeral direct text";
        unless "kafka queue broker";
    "communication:message-read" 0.85: "read get list fetch check search", "message email mail inbox";
        unless "kafka queue broker error commit";
    "communication:notification-subscribe" 0.86: "subscribe", "?newsletter notification alert update email webhook";
        within "newsletter notification alert update updates email webhook"; unless "price plan pricing billing";
    "communication:contact" 0.85: "contact", "?us sales support owner team form customer service"; unless "crm hubspot";
    "communication:contact" 0.85: "submit send create make", "inquiry enquiry";
    "communication:support-ticket" 0.85: "create open submit file raise get read search list update", "ticket", "?support";
        within support_words!(); unless "flight train concert airline lottery";
    "communication:translate" 0.88: "translate", "?text document content language page";
    "account:profile-update" 0.86: "update edit change modify", "profile account", "?user";
    "account:profile-read" 0.85: "get read view show fetch retrieve", "profile", "?user account passport";
        unless "company market linkedin stock lead";
    "account:profile-read" 0.84: "get read view retrieve", "account", "?user"; unless "ledger crm twitter bank";
    "account:settings-update" 0.86: change!(), "setting preference", "?user account";
    "account:settings-read" 0.85: "get read view show fetch list", "setting preference", "?user account";
    "account:create" 0.86: "create open register", "account", "?user customer";
    "account:create" 0.86: "signup", "?user account";
    "auth:login" 0.88: "login signin authenticate", "?user";
    "auth:logout" 0.88: "logout signout", "?user";
    "auth:token-refresh" 0.88: "refresh renew", "token", "?access auth";
    "auth:password-reset" 0.9: "reset forgot", "password", "?request";
    "content:comment-create" 0.88: "create add post write submit", "comment";
    "content:article-search" 0.87: "search find list browse query", "article blog news docs documentation", "?latest post";
    "content:article-search" 0.86: "get fetch latest", "news articles headlines", "?latest";
    "content:article-search" 0.86: "search find list browse query", "post"; within blog_words!();
    "content:article-read" 0.87: "read get view fetch show retrieve", "article documentation docs", "?page";
    "content:article-read" 0.85: "read get view fetch", "post"; within "blog";
    "content:article-create" 0.86: "create publish write draft generate publishing", "article blog", "?post";
    "content:summarize" 0.88: "summarize summarise summarization summarizer", "?text article document content page video url webpage";
    "content:book-search" 0.85: "search find browse", "book"; within "library author isbn novel publisher bookstore";
    "content:media-stream" 0.85: "stream play watch listen", "video audio music song podcast radio";
    "content:image-generate" 0.87: "generate create render draw", "image picture logo illustration";
        unless "docker container disk vm kubernetes";
    "weather:alert" 0.88: "alert warning", "weather storm", "?get";
    "weather:forecast" 0.88: "forecast", "weather", "?get hourly daily check";
    "weather:forecast" 0.86: "forecast", "?get hourly daily"; within "weather rain temperature";
    "weather:current" 0.85: "weather", "?get check local today lookup fetch"; unless "space solar geomagnetic";
    "maps:route" 0.85: "get find plan calculate compute", "route direction"; within map_words!();
        unless "swap dex liquidity fiber";
    "maps:geocode" 0.88: "geocode geocoding", "?address reverse forward location";
    "maps:place-search" 0.85: "search find nearby lookup", "place poi location", "?nearby"; within map_words!();
    "code:repository-search" 0.85: "search find list browse", "repository repo";
    "code:repository-search" 0.84: "search find", "code"; within repository_words!();
    "code:review" 0.87: "review audit lint analyze", "code codebase pr repository repo pull", "?request";
    "code:execute" 0.86: "run execute", "code script sandbox python";
    "code:generate" 0.86: "generate write scaffold", "code";
    "files:upload" 0.88: "upload", "*";
    "files:download" 0.86: "download", "*"; unless "app install android ios";
    "files:convert" 0.85: "convert transform", "file pdf document image video markdown audio";
    "files:read" 0.83: "get read fetch list open", document!(), "?content";
    "jobs:search" 0.87: "search find list browse discover", "job vacancy career position", "?open"; within job_words!();
        unless "queue cron worker batch trading pipeline";
    "jobs:apply" 0.87: "apply", "?job vacancy position role"; within "job vacancy career";
        unless "coupon discount patch migration filter";
    "finance:trade" 0.88: "trade swap buy sell", "stock crypto token share coin"; within finance_words!();
    "finance:trade" 0.87: "place create submit buy sell", "order"; within trading_words!();
    "finance:market-data" 0.87: "price quote rate ticker bar candle", "stock crypto bitcoin forex fx", "?get live fetch";
    "finance:market-data" 0.85: "price quote rate ticker data", "token market exchange currency coin", "?get live fetch";
        within finance_words!(); unless "llm model";
    "data:report-generate" 0.86: "generate create build run", "report"; unless "incident abuse bug spam";
    "data:export" 0.86: "export", "*"; unless "key import";
    "data:validate" 0.87: "validate validator lint", "json schema file manifest config configuration document yaml xml spec data txt";
    "data:analyze" 0.86: "analyze analyse", "?data dataset document text sentiment content website page";
    "data:analyze" 0.86: "audit", "site website page seo accessibility url";
    "search:query" 0.8: "search", "*";
}
