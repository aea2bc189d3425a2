//! The types that may be inferred: ATP's standard namespaces first, then what published manifests need beyond them.
//!
//! A capability has a type when every group of the entry matches one of its words. Specific types precede general ones.

/// A type and the words that imply it: groups of words with spaces between them.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) confidence: f64,
    pub(super) groups: &'static [&'static str],
}

/// Declares the entries, one row each: type, confidence, groups.
macro_rules! vocabulary {
    ($($name:literal $confidence:literal: $($words:expr),+;)*) => {
        pub(super) const VOCABULARY: &[Entry] =
            &[$(Entry { name: $name, confidence: $confidence, groups: &[$($words),+] }),*];
    };
}

const FIND: &str = "search find list browse lookup query discover explore get fetch show compare";
const BOOK: &str = "book booking reserve reservation buy purchase order";
const MAKE: &str = "create add new place submit post make write open register start";
const CHANGE: &str = "update edit change modify set patch manage rename";
const DROP: &str = "delete remove cancel drop clear";
const READ: &str = "get read view show fetch list status track check detail lookup";
const SEND: &str = "send post publish deliver write reply";
const FLIGHT: &str = "flight airfare airline plane";
const LODGING: &str = "hotel room lodging stay apartment hostel accommodation";
const DINING: &str = "table restaurant dining dinner";
const PRODUCT: &str = "product item catalog catalogue inventory merchandise sku listing offer";
const CART: &str = "cart basket";
const ARTICLE: &str = "article post blog page news content story docs documentation";
const APPOINTMENT: &str = "appointment meeting event calendar slot schedule visit session";
const REPOSITORY: &str = "repository repo code codebase commit branch issue pull";

vocabulary! {
    "travel:flight-booking" 0.9: BOOK, FLIGHT;
    "travel:flight-search" 0.88: FIND, FLIGHT;
    "travel:flight-status" 0.91: "status track delay", FLIGHT;
    "travel:flight-cancel" 0.92: "cancel refund", "flight ticket booking trip";
    "travel:check-in" 0.8: "check checkin", "in checkin boarding", "flight boarding passenger checkin";
    "travel:seat-selection" 0.85: "seat", "select choose assign change pick";
    "travel:hotel-booking" 0.9: BOOK, LODGING;
    "travel:hotel-search" 0.88: FIND, LODGING;
    "travel:restaurant-booking" 0.9: BOOK, DINING;
    "travel:restaurant-search" 0.8: FIND, "restaurant dining cafe menu";
    "travel:train-booking" 0.9: BOOK, "train rail";
    "travel:train-search" 0.85: FIND, "train rail";
    "travel:car-rental" 0.85: "rent rental hire book", "car vehicle van";
    "travel:ride-request" 0.85: "request book order hail", "ride taxi cab";
    "travel:trip-plan" 0.75: "plan itinerary planner", "trip travel itinerary route tour";
    "commerce:cart-add" 0.92: "add put", CART;
    "commerce:cart-remove" 0.92: DROP, CART;
    "commerce:cart-update" 0.91: CHANGE, CART;
    "commerce:cart-view" 0.85: "get view show read list", CART;
    "commerce:checkout" 0.9: "checkout";
    "commerce:order-create" 0.85: MAKE, "order purchase";
    "commerce:order-cancel" 0.9: "cancel return refund", "order purchase item";
    "commerce:order-status" 0.86: READ, "order shipment parcel delivery package";
    "commerce:product-search" 0.85: "search find browse query list discover filter compare", PRODUCT;
    "commerce:product-detail" 0.8: "get read view show detail fetch lookup", PRODUCT;
    "commerce:product-recommend" 0.85: "recommend recommendation suggest", "product item gift book";
    "commerce:quote" 0.75: "quote estimate", "get request create price shipping quote";
    "commerce:review" 0.8: "review rating", "get list submit post product read write";
    "commerce:subscription" 0.8: "subscription plan", "create update cancel manage list upgrade";
    "payments:pay" 0.85: "pay payment charge invoice", "pay create make send charge submit";
    "payments:transfer" 0.88: "transfer send wire", "fund money payment transfer token usdc";
    "payments:balance" 0.85: "balance";
    "payments:transaction-list" 0.85: READ, "transaction statement payment invoice";
    "payments:refund" 0.88: "refund";
    "scheduling:appointment-cancel" 0.9: DROP, APPOINTMENT;
    "scheduling:appointment-create" 0.88: "book create schedule add reserve make new", APPOINTMENT;
    "scheduling:availability-check" 0.88: "availability available free slot opening";
    "scheduling:event-search" 0.8: FIND, "event appointment meeting calendar conference";
    "communication:message-send" 0.88: SEND, "message email mail sms chat notification dm";
    "communication:message-read" 0.8: READ, "message email mail inbox chat thread";
    "communication:notification-subscribe" 0.85: "subscribe unsubscribe", "notification newsletter alert updates subscribe";
    "communication:contact" 0.75: "contact inquiry enquiry lead", "submit send create form us request contact";
    "communication:support-ticket" 0.82: MAKE, "ticket support case complaint";
    "communication:translate" 0.88: "translate translation";
    "account:profile-update" 0.86: CHANGE, "profile account user address";
    "account:profile-read" 0.8: READ, "profile account user member";
    "account:settings-update" 0.86: CHANGE, "setting preference configuration";
    "account:settings-read" 0.8: READ, "setting preference";
    "account:create" 0.82: "create open register signup", "account user signup agent";
    "auth:login" 0.88: "login signin authenticate";
    "auth:logout" 0.88: "logout signout";
    "auth:token-refresh" 0.88: "refresh renew issue", "token";
    "auth:password-reset" 0.9: "reset forgot", "password";
    "content:comment-create" 0.88: MAKE, "comment";
    "content:article-search" 0.82: "search find list browse query", ARTICLE;
    "content:article-read" 0.78: "get read view fetch show", ARTICLE;
    "content:article-create" 0.8: "create publish write draft generate", ARTICLE;
    "content:summarize" 0.85: "summarize summarise summary summarizer summarizing";
    "content:book-search" 0.8: "search find browse", "book library title author";
    "content:media-stream" 0.8: "stream play watch listen", "video audio music media song track podcast";
    "content:image-generate" 0.85: "generate create render draw", "image picture logo illustration";
    "weather:alert" 0.86: "weather storm", "alert warning";
    "weather:forecast" 0.85: "forecast";
    "weather:current" 0.82: "weather temperature";
    "maps:route" 0.82: "route direction navigate navigation";
    "maps:geocode" 0.88: "geocode geocoding coordinates";
    "maps:place-search" 0.8: FIND, "place location nearby store address map";
    "code:repository-search" 0.75: FIND, REPOSITORY;
    "code:review" 0.85: "review audit lint analyze analyse", "code pull repository repo";
    "code:execute" 0.82: "run execute deploy build", "code script function pipeline workflow sandbox";
    "code:generate" 0.8: "generate write scaffold", "code function component test";
    "files:upload" 0.88: "upload";
    "files:download" 0.82: "download";
    "files:convert" 0.82: "convert conversion transform", "file pdf document image format video markdown";
    "files:read" 0.75: READ, "file document folder pdf";
    "jobs:search" 0.82: FIND, "job vacancy career position";
    "jobs:apply" 0.85: "apply application", "job submit vacancy apply";
    "finance:market-data" 0.8: "price quote market rate ticker", "stock crypto token market exchange currency coin bitcoin";
    "finance:trade" 0.82: "trade swap buy sell", "stock token crypto order share swap";
    "health:appointment-create" 0.92: "book schedule create", "doctor clinic dentist patient medical";
    "data:report-generate" 0.82: "generate create build run", "report analytics dashboard";
    "data:export" 0.8: "export dump";
    "data:validate" 0.72: "validate verify validator";
    "data:analyze" 0.68: "analyze analyse analysis scan audit score assess";
    "search:query" 0.6: "search find query ask discover";
}
