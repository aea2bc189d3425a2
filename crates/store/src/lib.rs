//! All SQL of agentdex: PostgreSQL and embedded SQLite behind one contract.
