//! Decides what a polite crawler may do and when. Pure: `now` is an argument, and every decision carries its reason.
