/** Makes and changes elements; touches only what differs, so that nothing flickers and a selection survives. */

/**
 * @param {string} tag @param {Record<string, string>} attributes @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value)
  node.append(...children)
  return node
}

/** @param {Element} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}

/** @param {Element} node @param {string} name @param {string} value */
export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value)
}

/**
 * Keeps one child per item, in order: old children are kept and updated, new ones are made, others go.
 *
 * @template T
 * @param {Element} parent @param {readonly T[]} items
 * @param {{ key: (item: T) => string, make: (item: T) => HTMLElement, update: (node: HTMLElement, item: T) => void }} how
 */
export function keep(parent, items, { key, make, update }) {
  // Two items may have one key, and so may their children: each is taken once.
  const old = new Map()
  for (const child of parent.children) {
    const name = child.getAttribute('data-key')
    old.set(name, [...(old.get(name) ?? []), child])
  }
  items.forEach((item, index) => {
    const name = key(item)
    let node = old.get(name)?.shift()
    if (node === undefined) {
      node = make(item)
      node.setAttribute('data-key', name)
    }
    update(node, item)
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] ?? null)
  })
  for (const nodes of old.values()) for (const node of nodes) node.remove()
}

/** Fills a `dl` with label and value pairs. @param {Element} list @param {readonly (readonly [string, string])[]} facts */
export function setFacts(list, facts) {
  while (list.children.length > facts.length * 2) list.lastElementChild.remove()
  facts.forEach(([label, value], index) => {
    if (list.children.length <= index * 2) list.append(element('dt'), element('dd'))
    setText(list.children[index * 2], label)
    setText(list.children[index * 2 + 1], value)
  })
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const node = document.getElementById(id)
  if (node === null) throw new Error(`the page has no #${id}`)
  return node
}
