// Two placements: drawings of their blocks beside each other or one over the other, with their equations. Nothing here asks the server.
const NORMS = ["input", "inner", "output", "outer"]

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".lab")
  const kept = root.kept ?? { view: "forward", show: "side", at: 0 }
  root.kept = kept

  root.innerHTML = `
    <div class="tools">
      ${choice("view", "The signal", { forward: "Forward", backward: "Backward" }, kept.view)}
      ${choice("show", "The drawings", { side: "Side by side", slide: "Slide from one to the other" }, kept.show)}
      <label class="slide"><span></span><input type="range" min="0" max="1" step="0.01" aria-label="From one placement to the other"><span></span></label>
    </div>
    <div class="sides"></div>`
  const slider = root.querySelector(".slide")
  const [from, range, to] = slider.children
  from.textContent = data.sides[0].title
  to.textContent = data.sides[1].title
  range.value = kept.at
  range.oninput = () => { kept.at = Number(range.value); slide(root, kept.at) }
  for (const input of root.querySelectorAll(".choice input")) {
    input.onchange = () => { kept[input.name] = input.value; draw(root, data, kept, slider) }
  }
  draw(root, data, kept, slider)
}

function choice(name, legend, options, chosen) {
  const labels = Object.entries(options).map(([value, text]) =>
    `<label><input type="radio" name="${name}" value="${value}" ${value === chosen ? "checked" : ""}>${text}</label>`)
  return `<div class="choice" role="radiogroup" aria-label="${legend}">${labels.join("")}</div>`
}

function draw(root, data, kept, slider) {
  const grid = root.querySelector(".sides")
  const over = kept.show === "slide"
  slider.hidden = !over
  grid.classList.toggle("over", over)
  const blocks = data.sides.map((side, i) => `<div class="block" data-side="${i}">${side[kept.view]}</div>`)
  const drawn = over
    ? [`<h4>${data.sides.map((side) => `${side.title}: ${side.which}`).join(" – ")}</h4><div class="morph">${blocks.join("")}</div>`, ""]
    : data.sides.map((side, i) => `<h3>${side.title}</h3><h4>${side.which}</h4>${blocks[i]}<h4>The whole stack</h4><div class="block">${side.stack}</div>`)
  grid.innerHTML = data.sides.map((side, i) => `
    <section class="drawn${i}">${drawn[i]}</section>
    <section class="said${i}" data-side="${i}"><h3>${side.title}</h3><dl>${side.formulas}</dl></section>`).join("")
  light(grid, over)
  if (over) slide(root, kept.at)
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

// Norms that only one side has slide to the places of those that only the other has; everything else fades over.
function slide(root, at) {
  const drawings = [...root.querySelectorAll(".morph svg")]
  const parts = drawings.map((svg) => new Map([...svg.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part])))
  const same = (name) => parts.every((side) => side.has(name)) && parts[0].get(name).innerHTML === parts[1].get(name).innerHTML
  for (const paper of drawings[1].querySelectorAll(":scope > rect")) paper.style.opacity = 0
  drawings.forEach((svg, i) => {
    const weight = i ? at : 1 - at
    for (const shape of svg.children) {
      if (!shape.dataset?.part && shape.tagName !== "rect") shape.style.opacity = weight
    }
    for (const words of svg.querySelectorAll("[data-part$=stream] text")) words.style.opacity = i === Math.round(at) ? 1 : 0
    for (const [name, part] of parts[i]) {
      part.style.transform = ""
      part.style.opacity = same(name) ? 1 - i : weight
    }
  })
  for (const sublayer of ["attention", "feed_forward"]) {
    const only = [0, 1].map((i) => NORMS.map((site) => `${sublayer}.${site}`).filter((name) => parts[i].has(name) && !parts[1 - i].has(name)))
    only[0].slice(0, only[1].length).forEach((name, k) => {
      const [moving, goal] = [parts[0].get(name), parts[1].get(only[1][k])]
      const [x, y] = ["x", "y"].map((axis) => goal.querySelector("rect").getAttribute(axis) - moving.querySelector("rect").getAttribute(axis))
      moving.style.transform = `translate(${at * x}px, ${at * y}px)`
      moving.style.opacity = 1
      goal.style.opacity = 0
    })
  }
}
