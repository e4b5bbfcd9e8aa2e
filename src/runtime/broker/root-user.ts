/** The first user: from the operator, or generated and shown once. */
import { randomInt } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { MetadataStore } from '../../log/index.ts'
import type { Logger } from '../../logger.ts'
import type { PasswordHasher } from './password.ts'
import { ROOT_USER_ID } from './rights-book.ts'
import { checkPassword, checkUsername } from './users.ts'

export const DEFAULT_ROOT = { username: 'iggy', password: 'iggy' } as const
const GENERATED_LENGTH = 24
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789'

export interface RootCredentials {
  readonly username: string
  /** null: generate one. */
  readonly password: string | null
}

/**
 * What the operator asks for; used only when there is no root user yet.
 *
 * @param environment values of IGGY_ROOT_USERNAME and IGGY_ROOT_PASSWORD.
 * @throws {EdgeError} EDGE_CONFIG_INVALID when only one of them is set.
 */
export function rootCredentialsFrom(
  environment: { username: string | undefined; password: string | undefined },
  isDev: boolean,
): RootCredentials {
  const { username, password } = environment
  if (username !== undefined && password !== undefined) return { username, password }
  if (username !== undefined || password !== undefined) {
    const [found, missing] =
      username === undefined
        ? ['IGGY_ROOT_PASSWORD', 'IGGY_ROOT_USERNAME']
        : ['IGGY_ROOT_USERNAME', 'IGGY_ROOT_PASSWORD']
    throw new EdgeError('EDGE_CONFIG_INVALID', `${found} is set without ${missing}: set both, or neither`)
  }
  return isDev ? DEFAULT_ROOT : { username: DEFAULT_ROOT.username, password: null }
}

export interface RootParts {
  readonly metadata: MetadataStore
  readonly hasher: PasswordHasher
  readonly clock: Clock
  readonly logger: Logger
  /** Name and password of a root user that is there are replaced. */
  readonly isReset: boolean
}

/**
 * Makes the root user when there is none, or gives it back to an operator who has lost its password.
 *
 * @returns the password that was generated, to be shown this once.
 * @throws {EdgeError} EDGE_CONFIG_INVALID when the operator's do not fit: starting again does not make them right.
 */
export async function ensureRootUser(
  { metadata, hasher, clock, logger, isReset }: RootParts,
  credentials: RootCredentials,
): Promise<string | null> {
  const existing = metadata.users.get(ROOT_USER_ID)
  if (existing !== undefined && !isReset) return null
  if (existing !== undefined && credentials.password === null)
    throw new EdgeError(
      'EDGE_CONFIG_INVALID',
      'broker.reset_root: set IGGY_ROOT_USERNAME and IGGY_ROOT_PASSWORD beside it',
    )
  const { username } = credentials
  const password = credentials.password ?? generatePassword()
  checkRootCredentials({ username, password })
  if ([...metadata.users.values()].some((user) => user.id !== ROOT_USER_ID && user.username === username))
    throw new EdgeError('EDGE_CONFIG_INVALID', `IGGY_ROOT_USERNAME: another user is called "${username}"`)
  await metadata.putUser({
    id: ROOT_USER_ID,
    username,
    passwordHash: await hasher.hash(password),
    isActive: true,
    createdAtUs: existing?.createdAtUs ?? clock.wallUs(),
    permissionsJson: null,
  })
  if (existing !== undefined) logger.warn('broker.root.reset', { user_id: ROOT_USER_ID })
  return credentials.password === null ? password : null
}

/** @throws {EdgeError} EDGE_CONFIG_INVALID when nobody can be made of them. */
export function checkRootCredentials({ username, password }: RootCredentials): void {
  checkVariable('IGGY_ROOT_USERNAME', () => checkUsername(username))
  if (password !== null) checkVariable('IGGY_ROOT_PASSWORD', () => checkPassword(password))
}

function checkVariable(name: string, check: () => void): void {
  try {
    check()
  } catch (cause) {
    throw new EdgeError('EDGE_CONFIG_INVALID', `${name}: ${toEdgeError(cause).message}`, { cause })
  }
}

/** No letters that look like digits: it is typed from a screen. */
function generatePassword(): string {
  return Array.from({ length: GENERATED_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}
