// X-rays side by side: zoom, pan and window, together or each by itself.
//
// film ─▶ values (8 or 16 bits) ─▶ window ─▶ 256 grays ─▶ the part that is looked at
//
// A view is {zoom, x, y, level, width, inverted}: x and y are the middle, as shares of the film; level and width are
// relative to the window that the file asks for, so that films of two machines can be windowed together.

const MOST_PIXELS = 4_194_304; // of one film; the page is given at most a quarter of it
const MOST_ZOOM = 16;
const WHOLE = { zoom: 1, x: 0.5, y: 0.5, level: 0, width: 1, inverted: false };

/** Return the values of a film, one for each pixel; a film that is not whole is an error. */
async function unpackFilm({ width, height, bits, data }) {
  const size = width * height;
  if (!(size > 0 && size <= MOST_PIXELS && [8, 16].includes(bits))) throw new Error("The image is not whole.");
  const packed = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  if (bytes.length !== (size * bits) / 8) throw new Error("The image is not whole.");
  const values = new Uint16Array(size);
  const mask = bits === 8 ? 255 : 65535;
  for (let row = 0; row < size; row += width) {
    let value = 0;
    for (let at = row; at < row + width; at += 1) {
      value = (value + bytes[at] + (bits === 16 ? bytes[size + at] << 8 : 0)) & mask;
      values[at] = value;
    }
  }
  return values;
}

/** Return black and white of a view, as stored values. */
function windowOf({ low, high }, view) {
  const whole = high - low || 1;
  const middle = (low + high) / 2 + view.level * whole;
  const half = (view.width * whole) / 2;
  return [middle - half, middle + half];
}

/** Return the gray of each stored value under a window, as opaque pixels. */
function graysOf(film, view) {
  const [black, white] = windowOf(film, view);
  const grays = new Uint32Array(film.bits === 8 ? 256 : 65536);
  for (let value = 0; value < grays.length; value += 1) {
    const share = Math.min(1, Math.max(0, (value - black) / (white - black)));
    const gray = Math.round(255 * (view.inverted ? 1 - share : share));
    grays[value] = 0xff000000 | (gray << 16) | (gray << 8) | gray;
  }
  if (film.bits === 16) grays[0] = 0xff000000; // outside the picture
  return grays;
}

/** Return a view that lies inside the film. */
function withinFilm(view) {
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  return {
    ...view,
    zoom: clamp(view.zoom, 1, MOST_ZOOM),
    x: clamp(view.x, 0, 1),
    y: clamp(view.y, 0, 1),
    level: clamp(view.level, -2, 2),
    width: clamp(view.width, 0.02, 4),
  };
}

/** Return a view zoomed about a point of the film, which stays where it is. */
function zoomed(view, by, [x, y] = [view.x, view.y]) {
  const next = withinFilm({ ...view, zoom: view.zoom * by });
  const share = 1 - view.zoom / next.zoom;
  return withinFilm({ ...next, x: view.x + (x - view.x) * share, y: view.y + (y - view.y) * share });
}

/** A film on its canvas. */
class Film {
  constructor(name, film, values, changed) {
    this.name = name;
    this.film = film;
    this.values = values;
    this.view = WHOLE;
    this.pointers = new Map();
    this.changed = changed;
    this.grayed = null; // the film under the last window
    this.source = el("canvas", { width: film.width, height: film.height });
    this.words = el("figcaption", {});
    this.canvas = el("canvas", {
      class: "film",
      role: "img",
      tabindex: 0,
      "aria-label": `${name}: chest X-ray`,
      "aria-describedby": "film-keys",
      keydown: (event) => this.onKey(event),
      wheel: (event) => this.onWheel(event),
      pointerdown: (event) => this.onPointer(event),
      pointermove: (event) => this.onPointer(event),
      pointerup: (event) => this.onPointer(event),
      pointercancel: (event) => this.onPointer(event),
    });
    this.figure = el("figure", {}, this.canvas, this.words);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  /** Draw the film as its view says. */
  draw() {
    const { canvas, film, view } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((side) =>
      Math.round(side * window.devicePixelRatio),
    );
    if (!width || !height) return;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    this.drawSource();
    const scale = this.scale();
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    context.setTransform(scale, 0, 0, scale, width / 2 - view.x * film.width * scale, height / 2 - view.y * film.height * scale);
    context.imageSmoothingEnabled = scale < 4;
    context.drawImage(this.source, 0, 0);
    canvas.classList.toggle("zoomed", view.zoom > 1);
    this.describe();
  }

  /** Return how many pixels of the canvas one of the film has. */
  scale() {
    const { canvas, film, view } = this;
    return Math.min(canvas.width / film.width, canvas.height / film.height) * view.zoom;
  }

  /** Put the film through its window, where that changed. */
  drawSource() {
    const { film, view } = this;
    const asked = [view.level, view.width, view.inverted].join(" ");
    if (this.grayed === asked) return;
    this.grayed = asked;
    const context = this.source.getContext("2d");
    const image = context.createImageData(film.width, film.height);
    const [pixels, grays] = [new Uint32Array(image.data.buffer), graysOf(film, view)];
    for (let at = 0; at < pixels.length; at += 1) pixels[at] = grays[this.values[at]];
    context.putImageData(image, 0, 0);
  }

  /** Say the window and the zoom. */
  describe() {
    const { film, view } = this;
    const [black, white] = windowOf(film, view);
    const rounded = (value) => Math.round(value).toLocaleString("en").replace("-", "−");
    const level = rounded(film.first + (film.step * (black + white)) / 2);
    const width = rounded(Math.abs(film.step) * (white - black));
    this.words.textContent = `${this.name} · level ${level} · width ${width} · zoom ${Math.round(100 * view.zoom)} %`;
  }

  /** Return the point of the film under the pointer, as shares of it. */
  pointAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.scale() / window.devicePixelRatio;
    const at = (pointer, edge, size, middle, whole) => middle + (pointer - edge - size / 2) / (whole * scale);
    return [
      at(event.clientX, box.left, box.width, this.view.x, this.film.width),
      at(event.clientY, box.top, box.height, this.view.y, this.film.height),
    ];
  }

  /** Zoom with the wheel, once the film was chosen or with Ctrl: else the page scrolls. */
  onWheel(event) {
    if (document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    this.changed(this, zoomed(this.view, Math.exp(-event.deltaY / 400), this.pointAt(event)));
  }

  /** Move with the pointer, window with Shift or the right button, zoom with two fingers. */
  onPointer(event) {
    const { pointers, canvas, view, film } = this;
    const before = pointers.get(event.pointerId);
    if (event.type === "pointerdown") canvas.setPointerCapture(event.pointerId);
    if (event.type === "pointerup" || event.type === "pointercancel") pointers.delete(event.pointerId);
    else if (event.type === "pointerdown" || before) pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (event.type !== "pointermove" || !before) return;
    const [dx, dy] = [event.clientX - before[0], event.clientY - before[1]];
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]) || 1;
      this.changed(this, zoomed(view, apart([event.clientX, event.clientY]) / apart(before), this.pointAt(event)));
    } else if (event.shiftKey || event.buttons === 2 || canvas.dataset.drag === "window") {
      this.changed(this, withinFilm({ ...view, width: view.width * Math.exp(dx / 200), level: view.level - dy / 300 }));
    } else {
      const scale = this.scale() / window.devicePixelRatio;
      this.changed(
        this,
        withinFilm({ ...view, x: view.x - dx / (film.width * scale), y: view.y - dy / (film.height * scale) }),
      );
    }
  }

  /** Move, zoom and window by keys; all others are left to the page. */
  onKey(event) {
    const { view } = this;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = 0.08 / view.zoom;
    const [right, down] = [
      { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0,
      { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0,
    ];
    let next = null;
    if ((right || down) && event.shiftKey)
      next = { ...view, width: view.width * 1.1 ** right, level: view.level + 0.05 * down };
    else if (right || down) next = { ...view, x: view.x + right * way, y: view.y + down * way };
    else if (event.key === "+" || event.key === "=") next = zoomed(view, 1.25);
    else if (event.key === "-") next = zoomed(view, 0.8);
    else if (event.key === "0") next = WHOLE;
    else if (event.key === "i") next = { ...view, inverted: !view.inverted };
    if (!next) return;
    event.preventDefault();
    this.changed(this, withinFilm(next));
  }
}

/** Return films side by side with their tools: `named` is [[name, film]…], whose films are unpacked here. */
async function filmViewer(named) {
  let linked = true;
  let waiting = false;
  const sliders = [];
  const draw = () => {
    waiting = false;
    for (const film of films) film.draw();
    for (const [input, read] of sliders) input.value = read(films[0].view);
  };
  const changed = (source, view) => {
    for (const film of films) if (linked || film === source) film.view = view;
    if (!waiting) requestAnimationFrame(draw); // once a frame, however often the pointer moves
    waiting = true;
  };
  const unpacked = await Promise.all(named.map(([, film]) => unpackFilm(film)));
  const films = named.map(([name, film], at) => new Film(name, film, unpacked[at], changed));
  const each = (change) => {
    for (const film of linked ? films.slice(0, 1) : films) changed(film, withinFilm(change(film.view)));
  };
  const button = (name, words, change) =>
    el("button", { type: "button", "aria-label": words, title: words, click: () => each(change) }, name);
  const slider = (name, [min, max], read, write) => {
    const input = el("input", {
      type: "range",
      min,
      max,
      step: 0.01,
      value: read(WHOLE),
      input: () => each((view) => ({ ...view, ...write(Number(input.value)) })),
    });
    sliders.push([input, read]);
    return el("label", {}, name, input);
  };
  const drag = el(
    "button",
    {
      type: "button",
      "aria-pressed": false,
      click: () => {
        const on = drag.getAttribute("aria-pressed") !== "true";
        drag.setAttribute("aria-pressed", String(on));
        for (const { canvas } of films) canvas.dataset.drag = on ? "window" : "pan";
      },
    },
    "Drag windows",
  );
  const link = el("input", { type: "checkbox", checked: true, change: () => (linked = link.checked) });
  return el(
    "div",
    { class: "viewer" },
    el("div", { class: `films films-${films.length}` }, films.map(({ figure }) => figure)),
    el(
      "div",
      { class: "filmtools", role: "group", "aria-label": "Tools of the images" },
      button("−", "Zoom out", (view) => zoomed(view, 0.8)),
      button("+", "Zoom in", (view) => zoomed(view, 1.25)),
      button("Invert", "Invert black and white", (view) => ({ ...view, inverted: !view.inverted })),
      button("Reset", "Show the whole image as it is meant", () => WHOLE),
      drag,
      slider("Level", [-1, 1], ({ level }) => level, (level) => ({ level })),
      slider("Width", [-4, 2], ({ width }) => Math.log2(width), (power) => ({ width: 2 ** power })),
      films.length > 1 ? el("label", { class: "linked" }, link, "linked") : null,
    ),
    el(
      "p",
      { class: "note", id: "film-keys" },
      "Drag to move; two fingers, or the wheel on a chosen image, zoom; Shift and drag windows. Keys: arrows move, + and − zoom, Shift and arrows window, i inverts, 0 resets.",
    ),
  );
}
