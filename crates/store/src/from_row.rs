//! Reads the fields of a struct from the columns of a row.

/// Implements `sqlx::FromRow` for the rows of both databases. Each field is read from the column of the same name. Fields after a semicolon
/// are structs that are read from further columns of the same row.
///
/// The derive macro of sqlx does the same, but with its crate, the build compiles both drivers a second time for the proc macro.
macro_rules! from_row {
    ($name:ident { $($column:ident),+ $(; $($part:ident),+)? }) => {
        $crate::from_row::from_row!(@impl sqlx::postgres::PgRow, $name, [$($column)+], [$($($part)+)?]);
        $crate::from_row::from_row!(@impl sqlx::sqlite::SqliteRow, $name, [$($column)+], [$($($part)+)?]);
    };
    (@impl $row:ty, $name:ident, [$($column:ident)+], [$($part:ident)*]) => {
        impl sqlx::FromRow<'_, $row> for $name {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                Ok(Self {
                    $($column: sqlx::Row::try_get(row, stringify!($column))?,)+
                    $($part: sqlx::FromRow::from_row(row)?,)*
                })
            }
        }
    };
}
pub(crate) use from_row;
