import assert from 'node:assert/strict'
import { test } from 'node:test'

/** As much of an element as `keep` touches. */
class Node {
  readonly children: Node[] = []
  #parent: Node | null = null
  #key: string | null = null
  text = ''

  getAttribute(): string | null {
    return this.#key
  }

  setAttribute(_name: string, value: string): void {
    this.#key = value
  }

  insertBefore(node: Node, before: Node | null): void {
    node.remove()
    this.children.splice(before === null ? this.children.length : this.children.indexOf(before), 0, node)
    node.#parent = this
  }

  remove(): void {
    const siblings = this.#parent?.children ?? []
    if (siblings.includes(this)) siblings.splice(siblings.indexOf(this), 1)
    this.#parent = null
  }
}

interface Item {
  readonly id: string
  readonly text: string
}
interface How {
  key(item: Item): string
  make(): Node
  update(node: Node, item: Item): void
}
const { keep } = (await import('../../../../src/runtime/page/dom.js' as string)) as {
  keep(parent: Node, items: readonly Item[], how: How): void
}

const how: How = {
  key: ({ id }) => id,
  make: () => new Node(),
  update(node, { text }) {
    node.text = text
  },
}
const shown = (parent: Node): string => parent.children.map(({ text }) => text).join(' ')

test('children are kept, moved, made and removed by the keys of their items', () => {
  const parent = new Node()
  keep(
    parent,
    [
      { id: 'a', text: 'a1' },
      { id: 'b', text: 'b1' },
    ],
    how,
  )
  const [first] = parent.children
  keep(
    parent,
    [
      { id: 'c', text: 'c2' },
      { id: 'a', text: 'a2' },
    ],
    how,
  )
  assert.equal(shown(parent), 'c2 a2')
  assert.equal(parent.children[1], first)
})

test('items with one key have a child each, at every refresh', () => {
  const parent = new Node()
  for (let refresh = 0; refresh < 3; refresh++) {
    keep(
      parent,
      [
        { id: 'a', text: 'one' },
        { id: 'a', text: 'two' },
        { id: 'b', text: 'three' },
      ],
      how,
    )
    assert.equal(shown(parent), 'one two three')
  }
  keep(parent, [{ id: 'a', text: 'one' }], how)
  assert.equal(shown(parent), 'one')
})
