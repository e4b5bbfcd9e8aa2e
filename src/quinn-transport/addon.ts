/**
 * Gives out the quinn addon, loaded once. The executable hands in its own loader first; from a checkout or an installed
 * package the addon comes from `node_modules`.
 *
 * State of the module, not of an object: the WebTransport package constructs the transport's classes itself and passes
 * nothing through to them.
 */
import { EdgeError } from '../errors.ts'
import { loadAddonFromPackage } from './addon-file.ts'
import type { QuinnAddon } from './native-types.ts'
import { QUINN_ADDON_NAME } from './pinned-addons.ts'

/** @returns the exports of a native addon, by the name it has in the executable. */
export type AddonLoader = (name: string) => unknown

let loader: AddonLoader | undefined
let loaded: QuinnAddon | undefined

/** Sets where the addon comes from; must be called before the first session. */
export function useAddonLoader(addonLoader: AddonLoader): void {
  loader = addonLoader
  loaded = undefined
}

/** @throws EDGE_FEATURE_MISSING when there is no addon for this system. */
export function quinnAddon(): QuinnAddon {
  loaded ??= checked(loader === undefined ? loadAddonFromPackage() : loader(QUINN_ADDON_NAME))
  return loaded
}

function checked(exported: unknown): QuinnAddon {
  const isAddon =
    typeof exported === 'object' && exported !== null && 'NapiServer' in exported && 'NapiClient' in exported
  if (isAddon) return exported as QuinnAddon
  throw new EdgeError('EDGE_FEATURE_MISSING', `${QUINN_ADDON_NAME} is not the QUIC addon that this version expects`)
}
