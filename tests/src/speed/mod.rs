//! Parts of the speed benchmark: many generated capabilities ([`generated`]), peers over the same words ([`peers`]), a store
//! of visits ([`stored`]), a load for a server ([`load`]), and timers ([`measure`]).

pub mod generated;
pub mod load;
pub mod measure;
pub mod peers;
pub mod stored;
