// The data: inside the page, or from the service.

const fetched = new Map();
let pictures = new Map(); // addresses of images that this page made

/** Return the overview. */
async function loadOverview() {
  const inside = byId("explorer-data");
  if (!inside) return (await ask("/v1/explorer")).json();
  const data = JSON.parse(inside.textContent);
  embedded = new Map(data.studies.map((study) => [study.number, study]));
  return data.overview;
}

/** Return one study, from the page, from memory or from the service. */
async function loadStudy(wanted) {
  if (!overview.studies.some((row) => row.number === wanted)) throw new Error("There is no such study here.");
  if (embedded) return embedded.get(wanted);
  if (!fetched.has(wanted)) {
    fetched.set(wanted, await (await ask(`/v1/explorer/studies/${wanted}`)).json());
    if (fetched.size > KEPT) fetched.delete(fetched.keys().next().value);
  }
  return fetched.get(wanted);
}

/** Return an address that an <img> may show: the data itself, or a blob fetched with the token. */
async function loadImage(study) {
  if (typeof study.image === "string" && study.image.startsWith("data:image/")) return study.image;
  if (!pictures.has(study.number)) {
    for (const address of pictures.values()) URL.revokeObjectURL(address);
    const blob = await (await ask(`/v1/explorer/studies/${study.number}/image`)).blob();
    pictures = new Map([[study.number, URL.createObjectURL(blob)]]);
  }
  return pictures.get(study.number);
}

/** Show what went wrong: the form for the token, or a sentence. */
function fail(error) {
  if (error instanceof Refused) askForToken(error.message);
  else if (error instanceof SyntaxError)
    showError("The data could not be read: it is not whole; make the page again.");
  else showError(error.message);
  if (!overview) byId("facts").textContent = "";
}

/** Show the form for the token in place of everything else. */
function askForToken(why) {
  byId("facts").textContent = "";
  showError(why);
  remember("sessionStorage", "tabon-token", null);
  token = null;
  byId("list").hidden = byId("study").hidden = true;
  byId("token").hidden = false;
  byId("token-value").focus();
}
