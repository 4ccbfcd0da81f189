// Images of results: a lightbox over all images of a result, and a comparison of two images.

import { button, icon, linkOut, make } from "./dom.js";
import { t } from "./texts.js";

/** An image that opens the lightbox. */
export function galleryImage(href, alt) {
	const image = make("img", { src: href, alt, loading: "lazy" });
	return make("button.thumbnail", { type: "button", title: t("enlarge"), onclick: (event) => openLightbox(event.currentTarget) }, image);
}

/** Shows the images around a thumbnail one by one. */
function openLightbox(thumbnail) {
	const all = [...(thumbnail.closest(".many") ?? thumbnail.parentElement).querySelectorAll(".thumbnail img")];
	let at = all.indexOf(thumbnail.firstChild);
	const image = make("img");
	const place = make("span.note");
	const link = linkOut(all[at].src, icon("open"), make("span", t("openImage")));
	link.className = "button quiet";
	const go = (step) => {
		at = (at + step + all.length) % all.length;
		image.src = all[at].src;
		image.alt = all[at].alt;
		link.href = all[at].src;
		place.textContent = all.length > 1 ? t("version", { number: at + 1, count: all.length }) : "";
	};
	const close = button(t("close"), { name: "cross", small: true, onclick: () => dialog.close() });
	const previous = button(t("previousImage"), { name: "left", small: true, onclick: () => go(-1) });
	const next = button(t("nextImage"), { name: "right", small: true, onclick: () => go(1) });
	const dialog = make("dialog.lightbox", { "aria-label": t("image") }, make("div.row", all.length > 1 && [previous, place, next], link, close), image);
	dialog.addEventListener("keydown", (event) => {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (step && all.length > 1) go(step);
	});
	dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
	dialog.addEventListener("close", () => {
		dialog.remove();
		thumbnail.focus();
	});
	go(0);
	document.body.append(dialog);
	dialog.showModal();
	close.focus();
}

/** The input image beside the result, with a slider between them. */
export function comparison(before, href, alt) {
	const url = URL.createObjectURL(before);
	const after = make("img", { src: href, alt });
	const old = make("img.before", { src: url, alt: t("before"), onload: () => URL.revokeObjectURL(url) });
	const slider = make("input", { type: "range", min: 0, max: 100, value: 50, "aria-label": t("compare") });
	const box = make("div.compared", after, old, make("span.tag.left", t("before")), make("span.tag.right", t("after")));
	const draw = () => box.style.setProperty("--at", `${slider.value}%`);
	slider.addEventListener("input", draw);
	draw();
	return make("div.stack", box, slider);
}
