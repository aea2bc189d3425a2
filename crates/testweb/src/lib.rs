//! Virtual HTTPS hosts on loopback, told apart by SNI, with a log of every hit.
