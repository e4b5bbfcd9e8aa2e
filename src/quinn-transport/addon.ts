/**
 * Gives out the quinn addon, loaded once. From a checkout or an installed package it comes from `node_modules`; the build
 * of the executable puts its own loader in the place of `addon-file.ts`.
 *
 * State of the module, not of an object: the WebTransport package constructs the transport's classes itself and passes
 * nothing through to them.
 */
import { EdgeError } from '../errors.ts'
import { loadAddonFromPackage } from './addon-file.ts'
import type { QuinnAddon } from './native-types.ts'
import { QUINN_ADDON_NAME } from './pinned-addons.ts'

let loaded: QuinnAddon | undefined

/** @throws EDGE_FEATURE_MISSING when there is no addon for this system. */
export function quinnAddon(): QuinnAddon {
  loaded ??= checked(loadAddonFromPackage())
  return loaded
}

function checked(exported: unknown): QuinnAddon {
  const isAddon =
    typeof exported === 'object' && exported !== null && 'NapiServer' in exported && 'NapiClient' in exported
  if (isAddon) return exported as QuinnAddon
  throw new EdgeError('EDGE_FEATURE_MISSING', `${QUINN_ADDON_NAME} is not the QUIC addon that this version expects`)
}
