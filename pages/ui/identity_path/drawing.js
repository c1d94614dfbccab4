// Two placements: drawings of a block of each, beside each other or one over the other, with their equations.
// Drawing asks nothing of the server; it is told afterwards what is shown, for the address.
const NORMS = ["input", "inner", "output", "outer"]
const PAUSE = 300 // ms without a move of the slider
const VIEWS = { forward: "Forward", backward: "Backward", measured: "Backward, measured" }
// What arrives at a sublayer's input, the upper one first, and by which ways.
const ARRIVALS = {
  "h, before feed-forward": { "feed_forward.stream": "along the stream", "feed_forward.branch": "through feed-forward" },
  "x, before attention": {
    "attention.stream": "along the stream", "attention.branch": "through attention", "feed_forward.block_skip": "around the block",
  },
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".lab")
  const kept = (root.kept ??= { root, said: data.heard, at: 0 })
  kept.tell = setTriggerValue
  if (data.heard < kept.heard) kept.said = data.heard // a server that has been started anew
  kept.heard = data.heard
  const sides = JSON.stringify([data.sides, data.title])
  const next = data.heard < kept.said ? kept : data // what was said lately has not been heard yet
  if (kept.sides === sides && ["view", "slide", "step"].every((name) => kept[name] === next[name])) return
  Object.assign(kept, { sides, view: next.view, slide: next.slide, step: next.step, at: next.slide ?? kept.at })

  root.innerHTML = `
    <div class="tools">
      ${choice("view", "The signal", VIEWS, kept.view)}
      ${choice("show", "The drawings", { side: "Side by side", slide: "Slide from one to the other" }, kept.slide === null ? "side" : "slide")}
      <label class="slide"><span></span><input type="range" min="0" max="1" step="0.01" aria-label="From one placement to the other"><span></span></label>
      <label class="slide step"><span>Training step</span><input type="range" min="0" step="1" aria-label="Training step"><output></output></label>
    </div>
    <div class="sides"></div>`
  const [from, range, to] = root.querySelector(".slide").children
  from.textContent = data.sides[0].title
  to.textContent = data.sides[1].title
  range.value = kept.at
  range.oninput = () => { change(kept, { slide: Number(range.value) }); slide(root, kept.at) }
  range.onchange = () => tell(kept, PAUSE)
  const place = root.querySelector(".step input")
  place.max = data.steps.length - 1
  place.value = data.steps.findLastIndex((step) => step <= kept.step)
  place.oninput = () => { change(kept, { step: data.steps[place.value] }); measure(root, data, kept) }
  place.onchange = () => tell(kept, PAUSE)
  root.querySelector("[aria-label='The signal']").onchange = ({ target }) => {
    change(kept, { view: target.value })
    draw(root, data, kept)
    tell(kept)
  }
  root.querySelector("[aria-label='The drawings']").onchange = ({ target }) => {
    change(kept, { slide: target.value === "slide" ? kept.at : null })
    draw(root, data, kept)
    tell(kept)
  }
  draw(root, data, kept)
}

function change(kept, shown) {
  Object.assign(kept, shown)
  kept.at = kept.slide ?? kept.at
  kept.said += 1
}

function tell(kept, pause = 0, more = {}) {
  clearTimeout(kept.timer)
  kept.timer = setTimeout(() => {
    if (kept.root.isConnected) kept.tell("shown", { said: kept.said, view: kept.view, slide: kept.slide, step: kept.step, ...more })
  }, pause)
}

function choice(name, legend, options, chosen) {
  const labels = Object.entries(options).map(([value, text]) =>
    `<label><input type="radio" name="${name}" value="${value}" ${value === chosen ? "checked" : ""}>${text}</label>`)
  return `<div class="choice" role="radiogroup" aria-label="${legend}">${labels.join("")}</div>`
}

function draw(root, data, kept) {
  const grid = root.querySelector(".sides")
  const measured = kept.view === "measured"
  const over = kept.slide !== null && !measured
  root.querySelector(".slide").hidden = !over
  root.querySelector(".step").hidden = !measured || !data.sides.some((side) => side.measured)
  root.querySelector("[aria-label='The drawings']").hidden = measured
  grid.classList.toggle("over", over)
  const blocks = data.sides.map((side, i) => `<div class="block" data-side="${i}">${drawing(side, kept.view)}</div>`)
  const drawn = over
    ? [`<h4>${data.title}</h4><div class="morph">${blocks.join("")}</div>`, ""]
    : data.sides.map((side, i) => `<h3>${side.title}</h3><h4>${data.title}, ${side.which}</h4>${blocks[i]}${measured ? numbers(side, i) : ""}${stack(side, i, kept.view)}`)
  grid.innerHTML = data.sides.map((side, i) => `
    <section class="drawn${i}">${drawn[i]}</section>
    <section class="said${i}" data-side="${i}"><h3>${side.title}</h3><dl>${side.formulas}</dl></section>`).join("")
  light(grid, over)
  if (over) {
    lift(grid.querySelector(".morph"))
    slide(root, kept.at)
  } else {
    segments(grid, data, kept)
  }
  if (measured) measure(root, data, kept)
}

function drawing(side, view) {
  return view === "measured" ? side.measured?.svg ?? side.block.backward : side.block[view]
}

// A line for each way by which the gradient arrives, to be filled by `measure`.
function numbers(side, i) {
  if (!side.measured) return `<p class="arrivals">${side.missing[0]} <a href="./?run1=${encodeURIComponent(side.train)}">${side.missing[1]}</a></p>`
  const lines = Object.entries(ARRIVALS).map(([at, ways]) => `<tr><th colspan="3">Gradient at ${at}</th></tr>` +
    Object.entries(ways).filter(([name]) => name in side.measured.share).map(([name, words]) =>
      `<tr data-part="${name}"><td>${words}</td><td class="share"></td><td class="norm"></td></tr>`).join(""))
  return `<table class="arrivals" data-side="${i}"><caption></caption>${lines.join("")}</table>`
}

function measure(root, data, kept) {
  if (kept.view !== "measured") return
  const row = root.querySelector(".step input").value
  root.querySelector(".step output").textContent = `${data.steps[row]} of ${data.steps.at(-1)}`
  data.sides.forEach(({ measured }, i) => {
    if (!measured) return
    const section = root.querySelector(`.drawn${i}`)
    const end = measured.last < data.steps[row] ? `at its last step, ${measured.last}` : `step ${data.steps[row]}`
    section.querySelector("caption").textContent = `${measured.label}, ${end}`
    for (const [name, shares] of Object.entries(measured.share)) {
      const [share, words, norm] = [shares[row], measured.words[name][row], measured.norm[name][row]]
      const way = section.querySelector(`.way[data-part="${name}"]`)
      way.querySelector("path").style.strokeWidth = data.widest * (share ?? 0)
      way.querySelector("text").textContent = words
      const line = section.querySelector(`tr[data-part="${name}"]`)
      line.querySelector(".share").textContent = words
      line.querySelector(".norm").textContent = typeof norm === "number" ? `norm ${plain(norm)}` : norm // else in words, what it is
    }
  })
}

// 0.0123, 1.23·10⁻⁵
function plain(value) {
  if (value === 0 || (value >= 0.001 && value < 1000)) return value.toPrecision(3)
  const [digits, power] = value.toExponential(2).split("e")
  return `${digits}·10${power.replace("+", "").replace("-", "⁻").replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit])}`
}

function stack(side, i, view) {
  const several = side.segments.length > 1
  return `<h4>The whole stack${several ? ": choose which blocks to draw" : ""}</h4>
    <div class="block stack ${several ? "several" : ""}" data-side="${i}">${side.stack[view] ?? side.stack.backward}</div>`
}

// Where a stack has several segments, a click on one draws its last block.
function segments(grid, data, kept) {
  for (const drawing of grid.querySelectorAll(".several")) {
    for (const [first, last] of data.sides[drawing.dataset.side].segments) {
      const segment = drawing.querySelector(`[data-part="stack.blocks_${first}"]`)
      const shown = first <= data.drawn && data.drawn <= last
      segment.classList.toggle("shown", shown)
      segment.onclick = () => { if (!shown) tell(kept, 0, { block: last }) }
    }
  }
}

// A part of the drawing and the terms of the equations that stand for it light up together.
function light(grid, over) {
  grid.onpointerover = ({ target }) => {
    const [part, side] = [target.closest("[data-part]"), target.closest("[data-side]")]
    const scope = part && side ? grid.querySelectorAll(over ? "[data-side]" : `[data-side="${side.dataset.side}"]`) : []
    for (const lit of grid.querySelectorAll(".lit, .hovering")) lit.classList.remove("lit", "hovering")
    for (const one of scope) {
      one.classList.add("hovering")
      for (const same of one.querySelectorAll(`[data-part="${part.dataset.part}"]`)) same.classList.add("lit")
    }
  }
  grid.onpointerleave = ({ pointerType }) => {
    if (pointerType !== "touch") grid.onpointerover({ target: grid }) // a finger leaves at once, and the next tap follows
  }
}

// The norms and scales of both drawings go over the lines of both, each on a ground that no line shines through; those that move on top.
function lift(morph) {
  for (const block of [...morph.children].reverse()) {
    const above = block.cloneNode(false)
    const svg = above.appendChild(block.firstElementChild.cloneNode(false))
    svg.setAttribute("aria-hidden", "true")
    for (const part of block.querySelectorAll("[data-part]:has(> .norm, > .scale)")) {
      part.ground = part.querySelector(":scope > rect").cloneNode(false)
      part.ground.setAttribute("class", "ground")
      svg.append(part.ground, part)
    }
    morph.append(above)
  }
}

// Norms that only one side has slide to the places of those that only the other has; everything else fades over.
function slide(root, at) {
  const named = (i) => [...root.querySelectorAll(`.morph [data-side="${i}"] [data-part]`)].map((part) => [part.dataset.part, part])
  const parts = [0, 1].map((i) => new Map(named(i)))
  const same = (name) => parts.every((side) => side.has(name)) && parts[0].get(name).innerHTML === parts[1].get(name).innerHTML
  for (const paper of root.querySelectorAll(".morph [data-side='1'] > svg > rect:not(.ground)")) paper.style.opacity = 0
  for (const i of [0, 1]) {
    const weight = i ? at : 1 - at
    for (const words of root.querySelectorAll(`.morph [data-side="${i}"] > svg > text`)) words.style.opacity = weight
    for (const [name, part] of parts[i]) {
      part.style.transform = ""
      fade(part, same(name) ? 1 - i : weight)
      if (same(name) || !/\.(stream|branch)$/.test(name)) continue
      for (const words of part.querySelectorAll("text")) words.style.opacity = i === Math.round(at) ? 1 : 0 // two would overlap
    }
  }
  for (const sublayer of ["attention", "feed_forward"]) {
    const only = [0, 1].map((i) => NORMS.map((site) => `${sublayer}.${site}`).filter((name) => parts[i].has(name) && !parts[1 - i].has(name)))
    only[0].slice(0, only[1].length).forEach((name, k) => {
      const [moving, goal] = [parts[0].get(name), parts[1].get(only[1][k])]
      const [x, y] = ["x", "y"].map((axis) => goal.querySelector("rect").getAttribute(axis) - moving.querySelector("rect").getAttribute(axis))
      fade(moving, 1)
      moving.style.transform = `translate(${at * x}px, ${at * y}px)`
      moving.ground.style.opacity = 0
      moving.parentNode.append(moving)
      fade(goal, 0)
    })
  }
}

function fade(part, weight) {
  part.style.opacity = weight
  part.style.pointerEvents = weight ? "" : "none"
  if (part.ground) part.ground.style.opacity = Math.min(1, 3 * weight)
}
