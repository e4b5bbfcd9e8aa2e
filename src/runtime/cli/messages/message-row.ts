/** One message as a row: payloads are shown as what they are (SenML, CBOR, JSON, text, hex). */
import { decodeHeaders, type PolledMessage } from '../../../sdk/index.ts'
import { viewReading } from '../../observe/reading-view.ts'
import { formatHeaders } from '../header-text.ts'
import { formatMessageLine } from '../message-line.ts'
import { type Row, Shown, time } from '../output.ts'

/** Characters of a payload in a table; `--output json` and `--raw` give all of it. */
const MAX_TABLE_TEXT = 200

export interface PlacedMessage extends PolledMessage {
  readonly partitionId: number
}

export function messageRow(message: PlacedMessage, { withHeaders }: { readonly withHeaders: boolean }): Row {
  const { format, text, isCut } = viewReading(message.payload)
  const isLong = isCut || text.length > MAX_TABLE_TEXT
  const shown = isLong ? `${text.slice(0, MAX_TABLE_TEXT)}..` : text
  return {
    partition: message.partitionId,
    offset: message.offset,
    time: time(message.timestampUs),
    id: new Shown(String(message.id), message.id.toString(16)),
    ...(withHeaders ? { headers: formatHeaders(decodeHeaders(message)) } : {}),
    format,
    payload: new Shown(Buffer.from(message.payload).toString('base64'), shown),
  }
}

/** One line of `tail`. */
export function messageText(message: PlacedMessage, { withHeaders }: { readonly withHeaders: boolean }): string {
  const row = messageRow(message, { withHeaders })
  const text = (key: string): string => {
    const cell = row[key] ?? ''
    return (cell instanceof Shown ? cell.text : String(cell)).replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
  }
  const headers = withHeaders && text('headers') !== '' ? ` {${text('headers')}}` : ''
  return `${text('time')}  ${message.partitionId}:${message.offset}${headers}  ${text('payload')}`
}

export function messageLine(message: PlacedMessage, stream: string, topic: string): string {
  return formatMessageLine({ ...message, stream, topic, partition: message.partitionId })
}
