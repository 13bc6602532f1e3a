//! Who a connection says it is. The password appears nowhere but on the wire.

use std::fmt;

/// What is kept of a server's own words.
pub(super) const MAX_WORDS: usize = 400;

/// A user, a password and a database; any may be empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
    pub database: String,
}

impl Login {
    /// Both protocols end these texts with a NUL byte, so none may be in them.
    pub fn new(user: String, password: String, database: String) -> Result<Login, String> {
        for (name, text) in [
            ("user", &user),
            ("password", &password),
            ("database", &database),
        ] {
            if text.contains('\0') {
                return Err(format!("the {name} of login has a NUL character in it"));
            }
        }
        Ok(Login {
            user,
            password,
            database,
        })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// A server's own words as text of bearable length.
pub(super) fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_WORDS)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::WireKind;

    fn login() -> Login {
        Login::new("me".into(), "s3cret".into(), "db".into()).unwrap()
    }

    #[test]
    fn a_password_is_in_no_debug_output() {
        let said = format!("{:?} {:?}", login(), WireKind::Mysql(login()));
        assert!(
            said.contains("\"me\"") && !said.contains("s3cret"),
            "{said}"
        );
    }

    #[test]
    fn a_nul_in_a_login_is_refused_by_name() {
        let wrong = Login::new("me".into(), "a\0b".into(), String::new());
        assert_eq!(
            wrong.unwrap_err(),
            "the password of login has a NUL character in it"
        );
    }

    #[test]
    fn a_login_belongs_to_the_wires_that_have_one() {
        assert_eq!(
            WireKind::named("mysql", None, vec![]),
            Ok(WireKind::Mysql(Login::default()))
        );
        assert_eq!(
            WireKind::named("postgres", Some(login()), vec![]),
            Ok(WireKind::Postgres(login()))
        );
        assert_eq!(
            WireKind::named("sphinxql", None, vec![]),
            Ok(WireKind::Sphinxql(Login::default()))
        );
        assert_eq!(
            WireKind::named("sphinx", None, vec![]),
            Ok(WireKind::Sphinx)
        );
        for (name, login) in [
            ("sphinx", Some(login())),
            ("postgres", None),
            ("postgres", Some(Login::default())),
            ("http", Some(login())),
            ("frames", Some(login())),
            ("gopher", None),
        ] {
            assert!(WireKind::named(name, login, vec![]).is_err(), "{name}");
        }
    }
}
