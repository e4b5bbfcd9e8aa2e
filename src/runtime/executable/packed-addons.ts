/** First import of the executable, and only of it: from here on native addons come from inside. */
import { useAddonLoader } from '../../quinn-transport/index.ts'
import { loadAddon } from './addon.ts'

useAddonLoader(loadAddon)
