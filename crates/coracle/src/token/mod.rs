//! `coracle token`: bootstrap tokens, with which nodes join. They are ordinary Secrets of
//! `kube-system`, as kubeadm's.

mod form;
mod show;

use std::time::Duration;

use clap::{Args, Subcommand};
use coracle_api::time::Time;
use coracle_api::{Map, Value};
use coracle_client::config::Pem;
use coracle_client::{Client, Config, ConfigError, DeleteOptions, Error, ListOptions, Resource};
use ring::rand::{SecureRandom as _, SystemRandom};

pub(crate) use form::{BadToken, JoinToken, authority_hash};

use crate::administrator::Administrator;
use crate::process::{self, ProcessError};
use crate::server::join::{TOKEN_GROUP, server_in};
use crate::world::WORLD;

/// Creates, lists and deletes bootstrap tokens, with which nodes join a cluster.
#[derive(Args)]
pub(crate) struct Token {
    #[command(flatten)]
    cluster: Administrator,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a token and print it
    Create(Create),
    /// List all tokens
    List,
    /// Delete tokens
    Delete(Delete),
}

#[derive(Args)]
struct Create {
    /// The token: 6 letters or digits, a dot, and 16 letters or digits [default: a random one]
    token: Option<String>,
    /// Time after which the token is deleted: 30m, 24h; 0: never
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    ttl: Duration,
    /// What the token is for
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    description: String,
    /// Groups of who uses the token
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', default_value = TOKEN_GROUP)]
    groups: Vec<String>,
    /// What the token can be used for
    #[arg(
        long,
        value_name = "USAGES",
        value_delimiter = ',',
        default_value = "signing,authentication"
    )]
    usages: Vec<String>,
    /// Print the token without the hash of the CA, as kubeadm does
    #[arg(long, conflicts_with = "print_join_command")]
    plain: bool,
    /// Print the command with which a node joins
    #[arg(long)]
    print_join_command: bool,
}

#[derive(Args)]
struct Delete {
    /// Tokens, or their first 6 characters
    #[arg(required = true, value_name = "TOKEN")]
    tokens: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot configure the API client")]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Token(#[from] BadToken),
    #[error("--groups: {0:?} must start with system:bootstrappers: and end with a letter or digit")]
    Group(String),
    #[error("--usages: {0:?} is not signing or authentication")]
    Usage(String),
    #[error("a token with the first part {0} exists")]
    Exists(String),
    #[error("there is no token {0}")]
    Missing(String),
    #[error("no random numbers from the system")]
    Random,
    #[error("the kubeconfig names no CA; use --plain")]
    NoAuthority,
    #[error("the cluster does not say where nodes reach it: {0}")]
    NoServer(String),
    #[error(transparent)]
    Api(#[from] Error),
}

pub(crate) fn run(command: &Token) -> Result<(), TokenError> {
    process::block_on(async {
        match &command.command {
            Command::Create(create) => self::create(&command.cluster, create).await,
            Command::List => list(&command.cluster).await,
            Command::Delete(delete) => self::delete(&command.cluster, delete).await,
        }
    })?
}

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";

fn secrets(client: &Client) -> coracle_client::Access {
    client
        .resource(&Resource::builtin("", "v1", "secrets"))
        .namespace(NAMESPACE)
}

fn secret_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

async fn create(cluster: &Administrator, command: &Create) -> Result<(), TokenError> {
    check(command)?;
    let config = cluster.config()?;
    let client = Client::connect(config.clone(), WORLD).await?;
    let (id, secret) = match &command.token {
        Some(token) => form::parts(token)?,
        None => random_token()?,
    };
    let wanted = Wanted {
        ttl: command.ttl,
        description: &command.description,
        groups: &command.groups,
        usages: &command.usages,
    };
    write(&client, &wanted, &id, &secret).await?;

    if command.plain {
        process::print_line(format_args!("{id}.{secret}"));
        return Ok(());
    }
    let token = join_token(&config, id, secret)?;
    match command.print_join_command {
        true => {
            let server = server_of(&client).await?;
            process::print_line(format_args!(
                "coracle agent --server {server} --token {token}"
            ));
        }
        false => process::print_line(&token),
    }
    Ok(())
}

/// Creates a token for nodes that join now.
pub(crate) async fn for_nodes(config: &Config, ttl: Duration) -> Result<JoinToken, TokenError> {
    let client = Client::connect(config.clone(), WORLD).await?;
    let (id, secret) = random_token()?;
    let wanted = Wanted {
        ttl,
        description: "",
        groups: &[TOKEN_GROUP.to_owned()],
        usages: &["signing".to_owned(), "authentication".to_owned()],
    };
    write(&client, &wanted, &id, &secret).await?;
    join_token(config, id, secret)
}

/// What a token is to be.
struct Wanted<'a> {
    /// Zero: it does not expire.
    ttl: Duration,
    description: &'a str,
    groups: &'a [String],
    usages: &'a [String],
}

async fn write(
    client: &Client,
    wanted: &Wanted<'_>,
    id: &str,
    secret: &str,
) -> Result<(), TokenError> {
    let object = secret_object(wanted, id, secret);
    match secrets(client).create(&object).await {
        Err(error) if error.is_already_exists() => Err(TokenError::Exists(id.to_owned())),
        other => other.map(drop).map_err(TokenError::from),
    }
}

fn join_token(config: &Config, id: String, secret: String) -> Result<JoinToken, TokenError> {
    let authority = authority_hash(&authority(config)?).map_err(BadToken::Authority)?;
    Ok(JoinToken {
        id,
        secret,
        authority,
    })
}

fn check(command: &Create) -> Result<(), TokenError> {
    let is_group = |group: &&String| {
        let rest = group.strip_prefix("system:bootstrappers:");
        rest.is_some_and(|rest| {
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            rest.bytes()
                .all(|byte| plain(byte) || b":-".contains(&byte))
                && rest.bytes().last().is_some_and(plain)
                && rest.len() <= 256
        })
    };
    if let Some(group) = command.groups.iter().find(|group| !is_group(group)) {
        return Err(TokenError::Group(group.clone()));
    }
    let is_usage = |usage: &&String| ["signing", "authentication"].contains(&usage.as_str());
    match command.usages.iter().find(|usage| !is_usage(usage)) {
        Some(usage) => Err(TokenError::Usage(usage.clone())),
        None => Ok(()),
    }
}

/// The CA of the server, in PEM.
fn authority(config: &Config) -> Result<Vec<u8>, TokenError> {
    match &config.authorities {
        Some(Pem::Content(pem)) => Ok(pem.clone()),
        Some(Pem::File(file)) => std::fs::read(file).map_err(|source| {
            ConfigError::Read {
                file: file.clone(),
                source,
            }
            .into()
        }),
        None => Err(TokenError::NoAuthority),
    }
}

/// Where nodes reach the server, as `cluster-info` says.
async fn server_of(client: &Client) -> Result<String, TokenError> {
    let config_maps = Resource::builtin("", "v1", "configmaps");
    let access = client.resource(&config_maps).namespace("kube-public");
    let info = access.get("cluster-info").await?;
    server_in(&info)
        .map(|cluster| cluster.server)
        .map_err(TokenError::NoServer)
}

fn secret_object(wanted: &Wanted<'_>, id: &str, secret: &str) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion", "v1");
    object.insert("kind", "Secret");
    object.insert("type", TYPE);
    let metadata = object.object_mut("metadata");
    metadata.insert("name", secret_name(id));
    metadata.insert("namespace", NAMESPACE);

    let data = object.object_mut("stringData");
    data.insert("token-id", id);
    data.insert("token-secret", secret);
    for usage in wanted.usages {
        data.insert(format!("usage-bootstrap-{usage}").as_str(), "true");
    }
    if !wanted.groups.is_empty() {
        data.insert("auth-extra-groups", wanted.groups.join(","));
    }
    if !wanted.description.is_empty() {
        data.insert("description", wanted.description);
    }
    if !wanted.ttl.is_zero() {
        let seconds = i64::try_from(wanted.ttl.as_secs()).unwrap_or(i64::MAX);
        let until = WORLD.now().plus_seconds(seconds);
        data.insert("expiration", Value::String(Time(until).text()));
    }
    Value::Object(object)
}

/// The public and the secret part of a new token.
fn random_token() -> Result<(String, String), TokenError> {
    let mut bytes = [0; 64];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| TokenError::Random)?;
    // Bytes above the last multiple of 36 would make some characters likelier than others.
    let mut letters = bytes
        .iter()
        .filter(|byte| **byte < 252)
        .map(|byte| char::from(LETTERS[usize::from(byte % 36)]));
    let id: String = letters.by_ref().take(6).collect();
    let secret: String = letters.take(16).collect();
    match (id.len(), secret.len()) {
        (6, 16) => Ok((id, secret)),
        _ => Err(TokenError::Random),
    }
}

const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

async fn list(cluster: &Administrator) -> Result<(), TokenError> {
    let client = cluster.client().await?;
    let options = ListOptions::fields(format!("type={TYPE}"));
    let found = secrets(&client).list_all(&options).await?;
    process::print(show::table(&found.items, WORLD.now()));
    Ok(())
}

async fn delete(cluster: &Administrator, command: &Delete) -> Result<(), TokenError> {
    let client = cluster.client().await?;
    for token in &command.tokens {
        let id = form::id(token)?;
        let deleted = secrets(&client)
            .delete(&secret_name(&id), &DeleteOptions::default())
            .await;
        match deleted {
            Err(error) if error.is_not_found() => return Err(TokenError::Missing(id)),
            other => drop(other?),
        }
        process::print_line(format_args!("token {id} deleted"));
    }
    Ok(())
}

/// A duration as upstream writes it: `24h`, `1h30m`, `0`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed = coracle_api::time::parse_duration(text).map_err(|error| error.to_string())?;
    parsed
        .to_std()
        .ok_or_else(|| "must not be negative".to_owned())
}
