//! What the speed benchmark is made of: many made capabilities ([`made`]), peers over the same words ([`peers`]), a store
//! full of visits ([`stored`]), a load for a server ([`load`]), and stop-watches ([`measure`]).

pub mod load;
pub mod made;
pub mod measure;
pub mod peers;
pub mod stored;
