/** Long lists, the button that compares, and the weights of use cases. */

const LEAST = 2; // products that Bench compares
const MOST = 8;

function initMore(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-rank-more]")) {
    button.addEventListener("click", () => {
      const rest = button.closest("table")?.querySelector<HTMLElement>(".rank-more");
      if (rest) rest.hidden = false;
      button.closest("tr")?.remove();
      rest?.querySelector<HTMLElement>("input, a")?.focus();
    });
  }
}

/** The button says how many products are compared; Bench shows two to eight. */
function initCompare(): void {
  const button = document.querySelector<HTMLButtonElement>("#rank-go");
  const form = button?.form;
  if (!button || !form) return;
  const update = () => {
    const names = new Set(new FormData(form).getAll("product"));
    button.disabled = names.size < LEAST || names.size > MOST;
    button.textContent =
      names.size > MOST ? `At most ${MOST}` : names.size ? `Compare ${names.size}` : "Compare selected";
  };
  for (const box of form.elements) box.addEventListener("change", update);
  update();
}

/** Shares follow the sliders at once; the scores when a slider is released. */
function initWeights(): void {
  const form = document.querySelector<HTMLFormElement>("form[data-weights]");
  if (!form) return;
  const sliders = [...form.querySelectorAll<HTMLInputElement>("input[name=weight]")];
  const total = () => sliders.reduce((sum, slider) => sum + slider.valueAsNumber, 0);
  const update = () => {
    for (const slider of sliders) {
      const share = total() ? Math.round((100 * slider.valueAsNumber) / total()) : 0;
      const output = slider.parentElement?.querySelector("output");
      if (output) output.textContent = `${share} %`;
    }
  };
  for (const slider of sliders) {
    slider.addEventListener("input", update);
    slider.addEventListener("change", () => {
      if (total()) form.requestSubmit();
    });
  }
  form.querySelector("select")?.addEventListener("change", () => form.requestSubmit());
  form.querySelector<HTMLElement>("button")?.setAttribute("hidden", "");
}

export function initRankings(): void {
  initMore();
  initCompare();
  initWeights();
}
