/** Options of every command that talks to a server. Light, as all commands are declared at every start. */
import type { Argument } from './grammar.ts'
import { OUTPUT_FORMS } from './output.ts'

export const DEFAULT_HTTP_URL = 'http://127.0.0.1:3000'

export const SERVER_ARGUMENTS: readonly Argument[] = [
  {
    name: 'url',
    summary: 'Server as iggy://user:password@host:8090 or host:port; else IGGY_URL, else 127.0.0.1:8090.',
  },
  {
    name: 'http-url',
    aliases: ['http-api-url'],
    summary: 'HTTP address of the edge; else port 3000 of the host in --url.',
  },
  { name: 'username', aliases: ['u', 'credentials-username'], summary: 'User; else IGGY_USERNAME.' },
  { name: 'password', aliases: ['p', 'credentials-password'], summary: 'Password; else IGGY_PASSWORD.' },
  { name: 'token', aliases: ['t'], summary: 'Personal access token instead of user and password.' },
  { name: 'output', aliases: ['o', 'list-mode', 'l'], summary: `Form of results: ${OUTPUT_FORMS.join(', ')}.` },
  { name: 'quiet', aliases: ['q'], isFlag: true, summary: 'Print nothing when all went well, but for a new token.' },
  { name: 'transport', summary: 'Only tcp; for other ways in give --url.' },
  { name: 'tcp-server-address', summary: "As --url, in the words of Iggy's command line." },
  { name: 'tcp-tls-enabled', isFlag: true, summary: 'Connect with TLS.' },
  { name: 'tcp-tls-domain', summary: 'Name to expect in the certificate.' },
  { name: 'tcp-tls-ca-file', summary: 'File with the certificates to trust.' },
]
