/** What this program is called towards people and towards clients. */
import manifest from '../../package.json' with { type: 'json' }

/** Version of iggy-edge. */
export const PRODUCT_VERSION: string = manifest.version
/** Apache Iggy's server version whose behaviour clients can expect: what logins and statistics report. */
export const IGGY_VERSION = '0.9.0'
