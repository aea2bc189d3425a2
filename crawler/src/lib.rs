//! Visits web sites politely and reads what they declare to agents. The only crate that talks to the open web.
