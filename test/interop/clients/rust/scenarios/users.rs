//! Scenarios of users, their rights and their tokens.

use std::collections::BTreeMap;

use iggy::prelude::*;

use super::world::{World, expect_error, named, numeric};
use super::{Outcome, Step, expect, expect_equal};
use crate::generation;

pub async fn tokens(world: &World) -> Outcome {
    let client = world.connect().await?;
    let never = PersonalAccessTokenExpiry::NeverExpire;
    let made = client.create_personal_access_token("token-rust", never).await.step("create token")?;
    let names = client.get_personal_access_tokens().await.step("tokens")?;
    expect(names.iter().any(|token| token.name == "token-rust"), "the token is listed")?;
    let second = client.create_personal_access_token("token-rust", never).await;
    expect_error(second.map(|_| ()), &[51], "a second token of that name")?;
    let other = world.dial().await.step("connect")?;
    other.login_with_personal_access_token(&made.token).await.step("login with the token")?;
    other.create_stream(&world.name).await.step("create a stream by the token's rights")?;
    client.delete_personal_access_token("token-rust").await.step("delete token")?;
    let late = world.dial().await.step("connect")?;
    let login = late.login_with_personal_access_token(&made.token).await;
    // Over HTTP the client turns each 401 into its own 40.
    expect_error(login, &[20, 53, 40], "login with a deleted token")
}

pub async fn users(world: &World) -> Outcome {
    let client = world.connect().await?;
    let active = UserStatus::Active;
    let made = client.create_user("user-rust", "secret-1", active, None).await.step("create user")?;
    let id = numeric(made.id);
    let listed = client.get_users().await.step("users")?;
    expect(listed.iter().any(|user| user.username == "user-rust"), "the user is listed")?;
    let second = client.create_user("user-rust", "secret-1", active, None).await;
    expect_error(second, &[46], "a second user of that name")?;
    world.login("user-rust", "secret-1").await.step("login")?;
    client.change_password(&id, "secret-1", "secret-2").await.step("change the password")?;
    expect_error(world.login("user-rust", "secret-1").await, &[42], "the old password")?;
    world.login("user-rust", "secret-2").await.step("login with the new password")?;
    generation::rename_user(&client, &id, "user-rust-renamed").await.step("rename the user")?;
    let found = client.get_user(&id).await.step("user")?.ok_or("there is no user")?;
    expect_equal(found.username.as_str(), "user-rust-renamed", "renamed user")?;
    client.delete_user(&id).await.step("delete user")?;
    expect(client.get_user(&id).await.step("user")?.is_none(), "the user is gone")?;
    expect_error(world.login("user-rust-renamed", "secret-2").await, &[42], "login of a deleted user")
}

pub async fn permissions(world: &World) -> Outcome {
    let client = world.connect().await?;
    world.create_topic(&client, 1).await?;
    let name = named("reader-rust");
    client.create_user("reader-rust", "secret-1", UserStatus::Active, None).await.step("create user")?;
    let partition = Partitioning::partition_id(0);
    let own = world.connect_as("reader-rust", "secret-1").await?;
    expect_error(own.create_stream("not-allowed").await, &[41], "creation without rights")?;
    let sent = world.send(&own, &partition, &["x".into()]).await;
    expect_error(sent, &[41], "a send without rights")?;
    let stream = client.get_stream(&world.stream).await.step("stream")?.ok_or("there is no stream")?;
    let read = StreamPermissions { read_stream: true, poll_messages: true, ..Default::default() };
    let rights = Permissions {
        global: GlobalPermissions::default(),
        streams: Some(BTreeMap::from([(stream.id as usize, read)])),
    };
    client.update_permissions(&name, Some(rights)).await.step("grant the right to read")?;
    world.send(&client, &partition, &["for the reader".into()]).await.step("send")?;
    let own = world.connect_as("reader-rust", "secret-1").await?;
    let found = world.poll(&own, 0, PollingStrategy::first(), 10, false).await.step("poll")?;
    expect_equal(found.len(), 1, "messages the reader reads")?;
    let sent = world.send(&own, &partition, &["x".into()]).await;
    expect_error(sent, &[41], "a send with the right to read")?;
    expect_error(own.delete_stream(&world.stream).await, &[41], "a deletion with the right to read")
}
