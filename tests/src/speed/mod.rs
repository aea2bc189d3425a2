//! Parts of the speed benchmark: generated capabilities ([`generated`]), other engines with the same texts ([`peers`]), a store of visits
//! ([`stored`]), a load generator ([`load`]), and timers ([`measure`]).

pub mod generated;
pub mod load;
pub mod measure;
pub mod peers;
pub mod stored;
