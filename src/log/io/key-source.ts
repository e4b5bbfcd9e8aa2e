/** Brings the keys of a store from its settings. What they are is never part of a message. */
import { EdgeError, messageOf } from '../../errors.ts'
import { readFileBytes } from '../../file-kind.ts'
import type { EncryptionSettings } from '../encryption-settings.ts'
import { createStoreKeys, KEY_SIZE, noKeys, type StoreKeys } from './store-keys.ts'

/** 32 bytes in base64, with or without padding. */
const BASE64_KEY = /^[A-Za-z0-9+/]{43}=?$/

/** @throws EDGE_KEY_WRONG when encryption is on and there is no key, or what is given is none. */
export function readStoreKeys(settings: EncryptionSettings | undefined): StoreKeys {
  if (settings === undefined) return noKeys
  const { enabled, key, key_file, previous_keys } = settings
  if (key !== '' && key_file !== '') throw keyWrong('log.encryption.key and key_file are both set: which one counts?')
  const current = key_file === '' ? parsed('log.encryption.key', key) : readKeyFile(key_file)
  if (enabled && current === undefined) {
    throw keyWrong('log.encryption.enabled is true, and neither log.encryption.key nor key_file is set')
  }
  const previous = previous_keys.split(',').map((each) => parsed('log.encryption.previous_keys', each))
  const given = [current, ...previous].filter((each) => each !== undefined)
  return createStoreKeys(given, enabled)
}

function readKeyFile(path: string): Uint8Array {
  let bytes: Uint8Array
  try {
    bytes = new Uint8Array(readFileBytes(path))
  } catch (cause) {
    throw keyWrong(`log.encryption.key_file ${path} cannot be read: ${messageOf(cause)}`, cause)
  }
  // A key that was chosen at random is 44 letters of base64 with a chance of nil.
  if (bytes.length === KEY_SIZE) return bytes
  const key = parsed(`log.encryption.key_file ${path}`, new TextDecoder('latin1').decode(bytes))
  if (key === undefined) throw keyWrong(`log.encryption.key_file ${path} is empty`)
  return key
}

function parsed(place: string, text: string): Uint8Array | undefined {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  const key = BASE64_KEY.test(trimmed) ? new Uint8Array(Buffer.from(trimmed, 'base64')) : undefined
  if (key?.length !== KEY_SIZE) throw keyWrong(`${place} is not ${KEY_SIZE} bytes in base64 (44 letters)`)
  return key
}

export const keyWrong = (text: string, cause?: unknown): EdgeError => new EdgeError('EDGE_KEY_WRONG', text, { cause })
