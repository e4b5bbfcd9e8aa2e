/** Talks to the server the page came from. The token lives as long as the tab. */

const TOKEN_KEY = 'iggy-edge-token'
const TIMEOUT_MS = 8000
/** A token is renewed when less than this is left of it. */
const RENEW_SECONDS = 300

/** The server wants a login. */
export class LoginNeeded extends Error {}

/** No answer came: the server, or the way to it, is gone. */
export class NoAnswer extends Error {}

export function isLoggedIn() {
  return sessionStorage.getItem(TOKEN_KEY) !== null
}

export function forgetToken() {
  sessionStorage.removeItem(TOKEN_KEY)
}

/** @param {string} username @param {string} password @throws {Error} with a sentence for the user. */
export async function logIn(username, password) {
  const response = await send('/users/login', { method: 'POST', body: { username, password } })
  if (response.status === 400) throw new Error('User or password is wrong.')
  if (!response.ok) throw new Error(`The server answered ${response.status}.`)
  keepToken(await response.json())
}

export async function logOut() {
  const token = readToken()
  forgetToken()
  if (token !== null) await send('/users/logout', { method: 'DELETE', token: token.token })
}

/** @param {string} path @throws {LoginNeeded} */
export async function get(path) {
  const token = readToken()
  if (token === null) throw new LoginNeeded()
  const response = await send(path, { token: token.token })
  if (response.status === 401) {
    forgetToken()
    throw new LoginNeeded('Your login has ended.')
  }
  if (response.status === 403) throw new Error('This user may not look at the server: it needs the right read_servers.')
  if (!response.ok) throw new Error(`The server answered ${response.status}.`)
  await renew(token)
  return await response.json()
}

/** @param {{ token: string, expiry: number }} token */
async function renew({ token, expiry }) {
  if (expiry - Date.now() / 1000 > RENEW_SECONDS) return
  const response = await send('/users/refresh-token', { method: 'POST', body: { token } })
  if (!response.ok) return
  const renewed = await response.json()
  // Who logged out meanwhile stays logged out.
  if (readToken()?.token === token) keepToken(renewed)
}

function keepToken({ access_token: token }) {
  sessionStorage.setItem(TOKEN_KEY, JSON.stringify(token))
}

function readToken() {
  const text = sessionStorage.getItem(TOKEN_KEY)
  return text === null ? null : JSON.parse(text)
}

async function send(path, { method = 'GET', body, token } = {}) {
  const headers = { accept: 'application/json' }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  try {
    return await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
  } catch {
    throw new NoAnswer('No answer from the server.')
  }
}
