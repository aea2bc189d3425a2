//! Capabilities are found regardless of the wording of a request.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod indexed;
mod support;

use indexed::searcher;
use indexer::{SearchRequest, Searcher};
use manifest::model::SafetyClass;
use store::StoredManifest;

/// Shops, a bank, travel and maps.
fn web() -> Vec<StoredManifest> {
    let mut food = support::manifest("quick.example", "Quick Bites");
    support::add(&mut food, "order.cancel", "Cancels an order that is not being prepared.").safety.class =
        SafetyClass::Irreversible;
    support::add(&mut food, "order.track", "Status of an order and where the courier is.").safety.class =
        SafetyClass::Read;
    support::add(&mut food, "order.place", "Places an order and pays for it.").safety.class =
        SafetyClass::Irreversible;
    let mut bank = support::manifest("harbour.example", "Harbour Bank");
    support::add(&mut bank, "block-card", "Blocks a card that was lost.").safety.class =
        SafetyClass::Irreversible;
    support::add(&mut bank, "unblock-card", "Unblocks a card that was found again.").safety.class =
        SafetyClass::Write;
    support::add(&mut bank, "list-cards", "Lists the cards of an account.").safety.class = SafetyClass::Read;
    let mut travel = support::manifest("wayfarer.example", "Wayfarer");
    support::add(&mut travel, "plan-trip", "Plan a journey of several days.");
    let mut trams = support::manifest("lines.example", "City Lines");
    support::add(&mut trams, "departures", "The next departures of a stop.");
    let mut museum = support::manifest("tides.example", "Museum of Tides");
    support::add(&mut museum, "hours", "Opening hours of the museum.");
    support::add(&mut museum, "admission", "Buys tickets of the museum.");
    let mut maps = support::manifest("maps.example", "Maps");
    support::add(&mut maps, "lookup", "Finds the place of a zip code.");
    support::add(&mut maps, "zipcode_of_place", "Tells the zipcode of an address.");
    support::add(&mut maps, "route_v1", "Calculates a route for cars.").deprecated = true;
    support::add(
        &mut maps,
        "route_v2",
        "Calculates a route for cars and bicycles, with the traffic at the time of travel.",
    );
    vec![food, bank, travel, trams, museum, maps]
}

fn found(searcher: &Searcher, query: &str) -> Vec<String> {
    let request = SearchRequest { phrasings: vec![query.to_owned()], ..SearchRequest::default() };
    searcher.search(&request).unwrap().hits.into_iter().map(|hit| hit.native_id).collect()
}

#[test]
fn the_verb_decides_among_actions_of_one_object() {
    let (_dir, searcher) = searcher(&web());
    for (query, first) in [
        ("where is my order", "order.track"),
        ("track my order", "order.track"),
        ("cancel my order", "order.cancel"),
        ("unblock my card", "unblock-card"),
        ("block my card", "block-card"),
        ("is the museum open", "hours"),
        ("calculate a route", "route_v2"),
    ] {
        let found = found(&searcher, query);
        assert_eq!(found.first().map(String::as_str), Some(first), "{query}: {found:?}");
    }
}

/// The capability about the past contains the word of the request in its name, the forecast only in its description.
#[test]
fn the_time_decides_between_a_forecast_and_a_record() {
    let mut weather = support::manifest("skycast.example", "Skycast");
    support::add(&mut weather, "current_weather", "Temperature, wind, rain and cloud at a place now.");
    let forecast = "Weather forecast for up to fourteen days, by the hour or by the day.";
    support::add(&mut weather, "get_forecast", forecast);
    support::add(&mut weather, "past_weather", "Measured daily climate of a place since 1950.");
    let mut web = web();
    web.push(weather);
    let (_dir, searcher) = searcher(&web);
    for (query, first, last) in [
        ("weather tomorrow", "get_forecast", "past_weather"),
        ("weather this weekend", "get_forecast", "past_weather"),
        ("what will the weather be next week", "get_forecast", "past_weather"),
        ("weather last year", "past_weather", "get_forecast"),
        ("the weather ten years ago", "past_weather", "get_forecast"),
    ] {
        let found = found(&searcher, query);
        let of_weather: Vec<&str> = found
            .iter()
            .map(String::as_str)
            .filter(|name| name.contains("weather") || *name == "get_forecast")
            .collect();
        assert_eq!(
            (of_weather.first(), of_weather.last()),
            (Some(&first), Some(&last)),
            "{query}: {found:?}"
        );
    }
}

#[test]
fn a_verb_that_decides_finds_the_action_by_another_name() {
    let mut web = web();
    let mut shop = support::manifest("clay.example", "Clay");
    support::add(&mut shop, "cart.remove", "Takes a piece out of the cart.");
    let mut diary = support::manifest("daybook.example", "Daybook");
    support::add(&mut diary, "delete-event", "Deletes an event from the calendar; guests are told.");
    support::add(&mut diary, "list-events", "Lists the events of a calendar.");
    support::add(&mut diary, "create-event", "Creates an event with guests.");
    web.extend([shop, diary]);
    let (_dir, searcher) = searcher(&web);
    for (query, first) in [
        ("remove event", "delete-event"),
        ("remove from the cart", "cart.remove"),
        ("delete from the cart", "cart.remove"),
    ] {
        let found = found(&searcher, query);
        assert_eq!(found.first().map(String::as_str), Some(first), "{query}: {found:?}");
    }
}

#[test]
fn an_operation_that_does_the_opposite_is_not_first() {
    let mut web = web();
    web[1].manifest.capabilities.retain(|capability| capability.native_id != "unblock-card");
    let (_dir, searcher) = searcher(&web);
    let found = found(&searcher, "unblock my card");
    assert_eq!(found.first().map(String::as_str), Some("list-cards"), "{found:?}");
    assert!(found.contains(&"block-card".to_owned()), "the opposite operation is still listed");
}

#[test]
fn an_irreversible_operation_is_not_first_for_a_read_request() {
    let mut web = web();
    web[0].manifest.capabilities.retain(|capability| capability.native_id != "order.cancel");
    web[0].manifest.capabilities[1].description = Some("Order order order.".to_owned());
    let (_dir, searcher) = searcher(&web);
    assert_eq!(found(&searcher, "order")[0], "order.place");
    assert_eq!(found(&searcher, "show my order")[0], "order.track");
}

#[test]
fn a_result_that_only_shares_a_word_is_not_first_for_a_read_request() {
    let mut web = web();
    web[0].manifest.capabilities.retain(|capability| capability.native_id == "order.place");
    let mut news = support::manifest("daily.example", "Daily");
    let text = "Articles on law and order, on courts, police, prisons and the people of the city, with pictures and maps of every district.";
    support::add(&mut news, "articles", text).safety.class = SafetyClass::Read;
    web.push(news);
    let (_dir, searcher) = searcher(&web);
    let request =
        SearchRequest { phrasings: vec!["show my food order".to_owned()], ..SearchRequest::default() };
    let answer = searcher.search(&request).unwrap();
    let ids: Vec<&str> = answer.hits.iter().map(|hit| hit.native_id.as_str()).collect();
    assert_eq!((answer.relevant, ids), (Some(1), vec!["order.place", "articles", "admission"]));
}

#[test]
fn a_capability_that_reads_is_first_for_a_request_that_only_reads() {
    let mut shop = support::manifest("clay.example", "Clay");
    support::add(&mut shop, "cart.add", "Adds a piece to the shopping cart.").safety.class =
        SafetyClass::Write;
    support::add(&mut shop, "cart.view", "The pieces that were put into it, with their prices.")
        .safety
        .class = SafetyClass::Read;
    support::add(&mut shop, "opening-times", "When the studio is open.").safety.class = SafetyClass::Read;
    let mut web = web();
    web.push(shop);
    let changing = searcher(&web);
    for (query, first) in [
        ("shopping cart", "cart.add"),
        ("show my shopping cart", "cart.view"),
        ("put it into the shopping cart", "cart.add"),
    ] {
        let found = found(&changing.1, query);
        assert_eq!(found.first().map(String::as_str), Some(first), "{query}: {found:?}");
    }
    // nothing is known about the first result
    web[6].manifest.capabilities[0].safety.class = SafetyClass::Unknown;
    let unknown = searcher(&web);
    assert_eq!(found(&unknown.1, "show my shopping cart")[0], "cart.add");
}

#[test]
fn a_verb_of_two_words_decides_like_its_synonym() {
    let mut dentist = support::manifest("smile.example", "Smile");
    support::add(&mut dentist, "make-appointment", "Makes an appointment with the dentist.");
    support::add(&mut dentist, "cancel-appointment", "Cancels an appointment.");
    let mut web = web();
    web.push(dentist);
    let (_dir, searcher) = searcher(&web);
    assert_eq!(found(&searcher, "call off my appointment")[0], "cancel-appointment");
}

#[test]
fn an_identifier_finds_the_capabilities_that_have_all_of_it() {
    let mut tools = support::manifest("tools.example", "Tools");
    for at in 0..15 {
        support::add(&mut tools, &format!("ledger{at}"), "A key opens a new ledger, and this ledger ends.");
    }
    let resume = "Resumes earlier work after a pause, at the place where it stopped, with all files and messages. It needs \
                  the value of ledgerKey or get_state.";
    support::add(&mut tools, "resume", resume);
    for at in 0..15 {
        support::add(&mut tools, &format!("state{at}"), "Returns a state, the state of all states.");
    }
    let mut web = web();
    web.push(tools);
    let (_dir, searcher) = searcher(&web);
    for query in ["ledgerKey", "ledger_key", "getState", "get_state"] {
        let found = found(&searcher, query);
        assert_eq!(found.first().map(String::as_str), Some("resume"), "{query}: {found:?}");
    }
}

#[test]
fn plurals_of_abbreviations_are_one_word() {
    let mut tools = support::manifest("tools.example", "Tools");
    support::add(&mut tools, "list", "Lists the APIs of a company.");
    let mut web = web();
    web.push(tools);
    let (_dir, searcher) = searcher(&web);
    for query in ["APIs", "api", "API"] {
        assert_eq!(found(&searcher, query), ["list"], "{query}");
    }
}

#[test]
fn conversational_words_are_used_if_there_is_no_other_word() {
    let (_dir, searcher) = searcher(&web());
    assert_eq!(found(&searcher, "plan a weekend in lisbon"), ["plan-trip"]);
    assert_eq!(found(&searcher, "next bus"), ["departures"]);
    assert!(found(&searcher, "find me a plumber").is_empty(), "a verb of conversation alone selects nothing");
}

#[test]
fn finds_words_written_together_or_apart() {
    let mut web = web();
    let (_dir, apart_and_together) = searcher(&web);
    let mut names = found(&apart_and_together, "zip code");
    names.sort();
    assert_eq!(names, ["lookup", "zipcode_of_place"]);
    web[5].manifest.capabilities.retain(|capability| capability.native_id == "lookup");
    let (_dir, apart) = searcher(&web);
    assert_eq!(found(&apart, "zipcode"), ["lookup"]);
}
