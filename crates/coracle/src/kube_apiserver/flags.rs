//! The flags of the API server: upstream's names, sections and defaults, for what works here.

use std::path::PathBuf;

use super::options::Options;
use crate::flags::{Flag, Table, Takes};

pub(super) const TABLE: Table<Options> = Table {
    component: "kube-apiserver",
    about: "The Kubernetes API server: it keeps the cluster's objects, checks who may change them, and tells of changes.",
    sections: &["secure serving", "authentication", "authorization", "storage"],
    flags: &[SERVING, AUTHENTICATION, STORAGE],
    not_yet: &[],
};

const SERVING: &[Flag<Options>] = &[
    Flag {
        name: "bind-address",
        section: "secure serving",
        takes: Takes::Value("IP"),
        default: "0.0.0.0",
        about: "Address to listen on",
        set: |options, text| {
            options.bind_address = text.parse().map_err(|_| format!("failed to parse IP: {text:?}"))?;
            Ok(())
        },
    },
    Flag {
        name: "secure-port",
        section: "secure serving",
        takes: Takes::Value("PORT"),
        default: "6443",
        about: "Port to listen on, with TLS",
        set: |options, text| {
            options.secure_port = text.parse().map_err(|_| "not a port".to_string())?;
            Ok(())
        },
    },
    Flag {
        name: "tls-cert-file",
        section: "secure serving",
        takes: Takes::Value("FILE"),
        default: "",
        about: "The server's certificate, followed by those that lead to its authority",
        set: |options, text| file(&mut options.tls_cert_file, text),
    },
    Flag {
        name: "tls-private-key-file",
        section: "secure serving",
        takes: Takes::Value("FILE"),
        default: "",
        about: "The key of --tls-cert-file",
        set: |options, text| file(&mut options.tls_private_key_file, text),
    },
];

const AUTHENTICATION: &[Flag<Options>] = &[
    Flag {
        name: "client-ca-file",
        section: "authentication",
        takes: Takes::Value("FILE"),
        default: "",
        about: "Authorities of client certificates: the common name of one is the user, its organizations are the groups",
        set: |options, text| file(&mut options.client_ca_file, text),
    },
    Flag {
        name: "anonymous-auth",
        section: "authentication",
        takes: Takes::Switch,
        default: "true",
        about: "Let requests without credentials in, as system:anonymous of the group system:unauthenticated. Never \
                done while everything is allowed (--authorization-mode=AlwaysAllow)",
        set: |options, text| switch(&mut options.anonymous_auth, text),
    },
    Flag {
        name: "authorization-mode",
        section: "authorization",
        takes: Takes::Value("MODES"),
        default: "AlwaysAllow",
        about: "Who decides what a user may do. Only AlwaysAllow exists yet",
        set: |options, text| {
            options.authorization_mode.extend(text.split(',').map(ToString::to_string));
            Ok(())
        },
    },
];

const STORAGE: &[Flag<Options>] = &[Flag {
    name: "data-dir",
    section: "storage",
    takes: Takes::Value("DIR"),
    default: "",
    about: "Keep everything in the embedded store in this folder",
    set: |options, text| file(&mut options.data_dir, text),
}];

fn switch(option: &mut bool, text: &str) -> Result<(), String> {
    *option = match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
        "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
        _ => return Err(format!("strconv.ParseBool: parsing {text:?}: invalid syntax")),
    };
    Ok(())
}

fn file(option: &mut Option<PathBuf>, text: &str) -> Result<(), String> {
    *option = Some(PathBuf::from(text));
    Ok(())
}
