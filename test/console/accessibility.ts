/** Runs in the page: what a person who sees little, or uses no pointer, would stumble over. */
export const PROBLEMS = `(() => {
  const problems = []
  const told = (element) => element.outerHTML.replace(/\\s+/g, ' ').slice(0, 140)
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })

  let last = 0
  for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
    if (!isShown(heading)) continue
    const level = Number(heading.tagName[1])
    if (level > last + 1) problems.push('a level is left out before ' + told(heading))
    last = level
  }
  for (const element of document.querySelectorAll('[aria-labelledby], [aria-describedby], [for], [popovertarget], [list]')) {
    const ids = ['aria-labelledby', 'aria-describedby', 'for', 'popovertarget', 'list'].flatMap((name) =>
      (element.getAttribute(name) ?? '').split(' ').filter(Boolean))
    for (const id of ids) if (!document.getElementById(id)) problems.push(id + ' is not there: ' + told(element))
  }
  const seen = new Set()
  for (const { id } of document.querySelectorAll('[id]')) {
    if (seen.has(id)) problems.push('an id twice: ' + id)
    seen.add(id)
  }
  for (const element of document.querySelectorAll('[tabindex]')) {
    if (element.tabIndex > 0) problems.push('a tab order of its own: ' + told(element))
  }
  for (const element of document.querySelectorAll('*')) {
    const names = element.getAttributeNames().filter((name) => /^on|^style$/.test(name))
    // The drawing sets styles by script, which the policy allows.
    if (names.length > 0 && !element.closest('[data-graph]')) problems.push('inline ' + names + ': ' + told(element))
  }
  for (const script of document.scripts) if (!script.src) problems.push('an inline script: ' + told(script))

  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = colour
    canvas.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = ([r, g, b, a], below) => [r, g, b].map((value, i) => value * a + below[i] * (1 - a))
  const groundOf = (element) => {
    if (!element) return over(rgba(getComputedStyle(document.documentElement).backgroundColor), [255, 255, 255])
    const own = rgba(getComputedStyle(element).backgroundColor)
    return own[3] === 1 ? own.slice(0, 3) : over(own, groundOf(element.parentElement))
  }
  const luminance = (colour) => {
    const [r, g, b] = colour.map((value) => value / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const opacityOf = (element) =>
    element ? Number(getComputedStyle(element).opacity) * opacityOf(element.parentElement) : 1
  const contrastOf = (colour, element) => {
    const ground = groundOf(element)
    const [r, g, b, a] = rgba(colour)
    const [light, dark] = [luminance(over([r, g, b, a * opacityOf(element)], ground)), luminance(ground)].sort((x, y) => y - x)
    return (light + 0.05) / (dark + 0.05)
  }
  const check = (element, colour, what) => {
    const contrast = contrastOf(colour, element)
    if (contrast < 4.5) problems.push(what + ' of contrast ' + contrast.toFixed(2) + ': ' + told(element))
  }
  for (const element of document.querySelectorAll('body *')) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '')
    const isField = element.matches('input:not([type=hidden]), textarea, select')
    if (element.closest('svg, noscript, canvas') || element.matches(':disabled') || !isShown(element)) continue
    if (hasText || isField) check(element, getComputedStyle(element).color, 'text')
    if (element.placeholder) check(element, getComputedStyle(element, '::placeholder').color, 'placeholder')
  }
  return problems
})()`
