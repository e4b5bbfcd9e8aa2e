/**
 * A real browser without a window, driven over its debugging protocol: for tests of the page as a person sees it. The
 * program is named by the environment or found where packages put it; it is no part of this project.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'

const VARIABLE = 'EDGE_TEST_BROWSER'
const USUAL_PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const ARGUMENTS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--remote-debugging-port=0',
]

/** @returns the browser, or the reason why a test that needs one is left out. */
export function browserBinary(): { path: string } | { reason: string } {
  const named = process.env[VARIABLE]
  const path = [...(named ? [named] : []), ...USUAL_PLACES].find((each) => existsSync(each))
  return path === undefined
    ? { reason: `no browser: ${VARIABLE} names none, and ${USUAL_PLACES[0]} is not there` }
    : { path }
}

export class BrowserTab implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #socket: WebSocket
  readonly #answers = new Map<number, (message: Message) => void>()
  #lastId = 0
  /** What the page threw or logged, and dialogs it opened. */
  readonly complaints: string[] = []

  private constructor(child: ChildProcess, socket: WebSocket) {
    this.#child = child
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => this.#take(JSON.parse(String(data)) as Message))
  }

  /** @param profilePath a folder of the test's, for what the browser keeps. */
  static async open(binary: string, profilePath: string): Promise<BrowserTab> {
    const child = spawn(binary, [...ARGUMENTS, `--user-data-dir=${profilePath}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const killAtExit = () => child.kill('SIGKILL')
    process.once('exit', killAtExit)
    child.once('exit', () => process.off('exit', killAtExit))
    const { host } = new URL(await debuggingAddress(child))
    const targets = (await (await fetch(`http://${host}/json`)).json()) as {
      type: string
      webSocketDebuggerUrl: string
    }[]
    const page = targets.find(({ type }) => type === 'page')
    assert.ok(page !== undefined, 'the browser has no page')
    const socket = new WebSocket(page.webSocketDebuggerUrl)
    await once(socket, 'open')
    const tab = new BrowserTab(child, socket)
    for (const domain of ['Page', 'Runtime', 'Log']) await tab.command(`${domain}.enable`)
    return tab
  }

  async goTo(url: string): Promise<void> {
    await this.command('Page.navigate', { url })
  }

  /** @param expression JavaScript that runs in the page. @returns its value; undefined while the page is loading. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = (await this.command('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })) as { result: { value?: unknown }; exceptionDetails?: unknown }
    return exceptionDetails === undefined ? result.value : undefined
  }

  /** As a person fills it in. */
  async logIn(user: string, password: string): Promise<void> {
    await this.evaluate(`(() => {
      document.getElementById('username').value = ${JSON.stringify(user)}
      document.getElementById('password').value = ${JSON.stringify(password)}
      document.getElementById('login-form').requestSubmit()
    })()`)
  }

  /** What can be read in the element now; empty when it is hidden or not there. */
  async textOf(selector: string): Promise<string> {
    // Of what is not shown, `innerText` gives the text all the same.
    const text = await this.evaluate(`(() => {
      const element = document.querySelector(${JSON.stringify(selector)})
      return element?.checkVisibility() ? element.innerText : ''
    })()`)
    return String(text ?? '')
  }

  command(method: string, params: object = {}): Promise<object> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#answers.set(id, ({ result, error }) =>
        error === undefined ? resolve(result ?? {}) : reject(new Error(`${method}: ${error.message}`)),
      )
      this.#socket.send(JSON.stringify({ id, method, params }))
    })
  }

  #take(message: Message): void {
    const { id, method, params = {} } = message
    if (id !== undefined) {
      this.#answers.get(id)?.(message)
      this.#answers.delete(id)
    } else if (method === 'Runtime.exceptionThrown' || method === 'Runtime.consoleAPICalled') {
      this.complaints.push(JSON.stringify(params))
    } else if (method === 'Log.entryAdded' && params.entry?.source !== 'network') {
      this.complaints.push(JSON.stringify(params.entry))
    } else if (method === 'Page.javascriptDialogOpening') {
      this.complaints.push(`dialog ${params.message}`)
      void this.command('Page.handleJavaScriptDialog', { accept: true })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly message?: string; readonly entry?: { readonly source: string } }
  readonly result?: object
  readonly error?: { readonly message: string }
}

async function debuggingAddress(child: ChildProcess): Promise<string> {
  assert.ok(child.stderr !== null)
  const output: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    const [, address] = /^DevTools listening on (\S+)/.exec(line) ?? []
    if (address !== undefined) {
      child.stderr.resume()
      return address
    }
    output.push(line)
  }
  throw new Error(`the browser ended:\n${output.join('\n')}`)
}
