/** The quinn addon as published (@moq/web-transport 0.1.4) and as `lowerGlibc` leaves it, by architecture. */
export interface PinnedAddon {
  /** File beside the package's `package.json`. */
  readonly fileName: string
  readonly publishedSha256: string
  readonly loweredSha256: string
}

export const PINNED_ADDONS: Readonly<Record<string, PinnedAddon>> = {
  x64: {
    fileName: 'web-transport.linux-x64-gnu.node',
    publishedSha256: '6953b1d57f2887cd74885cb3c2d13c314899baaa0513b6069c65c4b3b3b5bcf4',
    loweredSha256: 'ae907e2041517b2bd483f19cdbad0280df6b30f0c236ac5c63d48be4baca4a1e',
  },
  arm64: {
    fileName: 'web-transport.linux-arm64-gnu.node',
    publishedSha256: 'a1a729b47ad69006803e28388a69948b2188bb346599b972ecb1bcc59a7f8efc',
    loweredSha256: 'e429be24aa3363975b8c10704e6f358c679eb0490b339cc8246235a84b25b8fe',
  },
}

/** Name under which the addon travels in the executable. */
export const QUINN_ADDON_NAME = 'web-transport.node'
