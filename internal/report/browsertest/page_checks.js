// What is wrong with the page as it is shown now, one sentence each. Colours are compared as WCAG 2.2 does (1.4.3).
(() => {
	const problems = [], leastContrast = 4.5;
	const parse = (colour) => {
		const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
		return { r, g, b, a };
	};
	const over = (top, below) => ({
		r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a),
		b: top.b * top.a + below.b * (1 - top.a), a: 1,
	});
	const backgroundOf = (element) => {
		const layers = [];
		for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
		return layers.reverse().reduce((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
	};
	const luminance = ({ r, g, b }) => {
		const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * x + .7152 * y + .0722 * z;
	};
	const contrast = (a, b) => {
		const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
		return (high + .05) / (low + .05);
	};
	let texts = 0, lowest = 21;
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; node = walker.nextNode();) {
		const e = node.parentElement;
		if (!node.textContent.trim() || !e.checkVisibility() || e.closest("svg, script")) continue;
		const style = getComputedStyle(e), background = backgroundOf(e);
		const ratio = contrast(over(parse(style.color), background), background);
		texts++;
		lowest = Math.min(lowest, ratio);
		if (ratio < leastContrast) problems.push(`contrast ${ratio.toFixed(2)} of ${node.textContent.slice(0, 40)}`);
		if (parseFloat(style.fontSize) < 10) problems.push(`${style.fontSize} for ${node.textContent.slice(0, 40)}`);
	}
	if (texts < 5) problems.push(`${texts} texts`);
	const wide = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth > wide) {
		problems.push(`it is ${document.documentElement.scrollWidth} px wide`);
	}
	for (const e of document.body.querySelectorAll("*")) {
		const box = e.getBoundingClientRect();
		if (box.width > 0 && (box.right > wide + 1 || box.left < -1) && !e.closest(".scroll")) {
			problems.push(`${e.tagName} from ${box.left} to ${box.right}: ${e.textContent.slice(0, 40)}`);
		}
	}
	return { problems: problems.slice(0, 10), texts, lowest };
})()
