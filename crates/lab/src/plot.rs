//! Lines over a logarithmic vertical axis, as SVG.

use std::fmt::Write;

/// A plot of some lines.
#[derive(Clone, Debug)]
pub struct Plot<'a> {
    /// Above it.
    pub title: &'a str,
    /// Below the horizontal axis.
    pub x: &'a str,
    /// How that axis is divided.
    pub x_scale: Scale,
    /// Beside the vertical axis.
    pub y: &'a str,
    /// Names and points, all coordinates positive.
    pub lines: Vec<(&'a str, Vec<(f64, f64)>)>,
}

/// How a horizontal axis is divided.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Scale {
    /// Powers of four, at equal distances.
    #[default]
    Fours,
    /// From 0 to 100.
    Hundred,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 6] = [
    "#1b6ca8", "#c8553d", "#4f772d", "#7b4b94", "#b08900", "#444444",
];

/// An axis.
enum Axis {
    /// Logarithmic, over whole powers of `base`.
    Powers { base: f64, first: i32, last: i32 },
    /// From 0 to 100.
    Hundred,
}

impl Axis {
    fn powers(values: impl Iterator<Item = f64>, base: f64) -> Self {
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let first = (least.log(base) + 1e-9).floor() as i32;
        let last = ((most.log(base) - 1e-9).ceil() as i32).max(first + 1);
        Self::Powers { base, first, last }
    }

    /// From 0 to 1.
    fn place(&self, value: f64) -> f64 {
        match *self {
            Self::Powers { base, first, last } => {
                (value.log(base) - f64::from(first)) / f64::from(last - first)
            }
            Self::Hundred => value / 100.0,
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match *self {
            Self::Powers { base, first, last } => {
                (first..=last).map(|power| base.powi(power)).collect()
            }
            Self::Hundred => (0..=5).map(|fifth| 20.0 * f64::from(fifth)).collect(),
        }
    }
}

impl Plot<'_> {
    /// The picture, with powers of ten beside it. Empty without points.
    #[must_use]
    pub fn svg(&self) -> String {
        let all = || self.lines.iter().flat_map(|line| &line.1);
        if all().next().is_none() {
            return String::new();
        }
        let x_axis = match self.x_scale {
            Scale::Fours => Axis::powers(all().map(|point| point.0), 4.0),
            Scale::Hundred => Axis::Hundred,
        };
        let y_axis = Axis::powers(all().map(|point| point.1), 10.0);
        let x = |value: f64| LEFT + x_axis.place(value) * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - y_axis.place(value) * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        let text = |svg: &mut String, at: (f64, f64), attributes: &str, text: &str| {
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" {attributes}>{text}</text>",
                at.0, at.1
            );
        };
        text(&mut svg, (LEFT, 22.0), "font-size=\"15\"", self.title);
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        text(
            &mut svg,
            (middle, HEIGHT - 12.0),
            "text-anchor=\"middle\"",
            self.x,
        );
        let rotated = format!(
            "text-anchor=\"middle\" transform=\"rotate(-90 16 {:.1})\"",
            HEIGHT / 2.0
        );
        text(&mut svg, (16.0, HEIGHT / 2.0), &rotated, self.y);
        for tick in x_axis.ticks() {
            let (at, bottom) = (x(tick), HEIGHT - BOTTOM);
            let _ = writeln!(svg, "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>");
            text(
                &mut svg,
                (at, bottom + 16.0),
                "text-anchor=\"middle\"",
                &number(tick),
            );
        }
        for tick in y_axis.ticks() {
            let (at, right) = (y(tick), WIDTH - RIGHT);
            let _ = writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ddd\"/>");
            text(
                &mut svg,
                (LEFT - 6.0, at + 4.0),
                "text-anchor=\"end\"",
                &number(tick),
            );
        }
        for (i, (name, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let places: Vec<String> = points
                .iter()
                .map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                places.join(" ")
            );
            for point in points {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                    x(point.0),
                    y(point.1)
                );
            }
            let at = (WIDTH - RIGHT + 14.0, TOP + 14.0 + 18.0 * i as f64);
            text(&mut svg, at, &format!("fill=\"{colour}\""), name);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn number(value: f64) -> String {
    if value >= 1.0 {
        format!("{value:.0}")
    } else {
        format!("{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_where_their_logarithms_say() {
        let plot = Plot {
            title: "a < b",
            x: "values",
            x_scale: Scale::Fours,
            y: "Keccaks",
            lines: vec![("one", vec![(1.0, 1.0), (16.0, 10.0), (256.0, 100.0)])],
        };
        let shares = Plot {
            x_scale: Scale::Hundred,
            lines: vec![("one", vec![(0.0, 1.0), (50.0, 10.0), (100.0, 100.0)])],
            ..plot.clone()
        };
        let places = "points=\"70.0,350.0 260.0,195.0 450.0,40.0\"";
        assert!(shares.svg().contains(places) && shares.svg().contains(">80</text>"));
        let svg = plot.svg();
        // The whole width and height, and the middle of both.
        assert!(
            svg.contains("points=\"70.0,350.0 260.0,195.0 450.0,40.0\""),
            "{svg}"
        );
        assert!(svg.contains("a &lt; b") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    #[test]
    fn nothing_gives_nothing() {
        let plot = Plot {
            title: "",
            x: "",
            x_scale: Scale::Fours,
            y: "",
            lines: vec![],
        };
        assert_eq!(plot.svg(), "");
    }
}
