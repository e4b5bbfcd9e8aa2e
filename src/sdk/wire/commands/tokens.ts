/** Personal access tokens (protocol section 7.3). */
import { listToEnd, name, nothing, secret, struct, u32, u64 } from '../codec.ts'
import { CODE } from '../codes.ts'
import { command } from './command.ts'

/** `expiryAtUs` 0 = never. */
export const getPersonalAccessTokens = command(
  CODE.getPersonalAccessTokens,
  nothing,
  struct({ tokens: listToEnd(struct({ name, expiryAtUs: u64 })) }),
)

/** `expiryUs` is a duration; 0 and u64::MAX = never. The token's text is shown this once. */
export const createPersonalAccessToken = command(
  CODE.createPersonalAccessToken,
  struct({ name, expiryUs: u64 }),
  struct({ token: secret }),
)

export const deletePersonalAccessToken = command(CODE.deletePersonalAccessToken, struct({ name }), nothing)

/** Classic only. */
export const loginWithPersonalAccessToken = command(
  CODE.loginWithPersonalAccessToken,
  struct({ token: name }),
  struct({ userId: u32 }),
)
