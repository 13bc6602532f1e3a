//! A test for each format, by one list of them.

/// `each_format!(run)`: tests that call `run` with their own name and their format, and one that no
/// format is left out.
macro_rules! each_format {
    ($run:ident) => {
        each_format! { $run:
            sphinx_plain: SphinxPlain,
            sphinxql: SphinxQl,
            access: Access,
            mysql_slow: MysqlSlow,
            mysql_general: MysqlGeneral,
            postgres_text: PostgresText,
            postgres_csv: PostgresCsv,
            postgres_json: PostgresJson,
            groonga: Groonga,
            slowlog: SlowPlain,
            slowlog_json: SlowJson,
            solr: Solr,
            json: Json,
            ltsv: Ltsv,
            csv: Csv,
            line: Pattern,
        }
    };
    ($run:ident: $($name:ident: $format:ident,)*) => {
        $(#[test]
        fn $name() {
            $run(stringify!($name), Format::$format);
        })*

        #[test]
        fn every_format_has_a_target() {
            assert_eq!(Format::ALL, [$(Format::$format),*]);
        }
    };
}
