//! Running sums: what each step adds, added up.

use arbor_ipa::Point;

/// What stands before a point in its row.
#[derive(Clone, Copy)]
pub(super) enum Before {
    /// Nothing: it begins the row.
    Nothing,
    /// What was there already.
    Old(Point),
    /// Another point, by its index: one before this.
    Step(usize),
}

/// Adds to each point the sum of what stands before it. The first points of all rows are added side by side, then the second ones, and so on.
pub(super) fn add_up(points: &mut [Point], before: &[Before]) {
    let mut depths = Vec::with_capacity(points.len());
    let mut rounds: Vec<Vec<usize>> = vec![Vec::new()];
    for (at, before) in before.iter().enumerate() {
        let depth = match *before {
            Before::Nothing | Before::Old(_) => 0,
            Before::Step(earlier) => depths[earlier] + 1,
        };
        depths.push(depth);
        if depth == rounds.len() {
            rounds.push(Vec::new());
        }
        if !matches!(before, Before::Nothing) {
            rounds[depth].push(at);
        }
    }
    for round in rounds {
        let others = round.iter().map(|&at| match before[at] {
            Before::Nothing => Point::IDENTITY,
            Before::Old(point) => point,
            Before::Step(earlier) => points[earlier],
        });
        let others: Vec<Point> = others.collect();
        let mut sums: Vec<Point> = round.iter().map(|&at| points[at]).collect();
        Point::add_all(&mut sums, &others);
        for (at, sum) in round.into_iter().zip(sums) {
            points[at] = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_unequal_lengths_are_added_up_to_their_ends() {
        let multiple = |n: usize| (0..n).fold(Point::IDENTITY, |sum, _| sum + Point::generator());
        // Of each row what it begins with, and how many points it has.
        let rows = [
            (None, 1),
            (Some(7), 1),
            (Some(3), 4),
            (None, 2),
            (Some(0), 3),
            (Some(1), 9),
        ];
        let (mut points, mut before, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        for (old, length) in rows {
            let mut sum = old.unwrap_or(0);
            for step in 0..length {
                before.push(match (step, old) {
                    (0, None) => Before::Nothing,
                    (0, Some(old)) => Before::Old(multiple(old)),
                    _ => Before::Step(points.len() - 1),
                });
                let added = points.len() + 1;
                points.push(multiple(added));
                sum += added;
                sums.push(multiple(sum));
            }
        }
        add_up(&mut points, &before);
        assert_eq!(points, sums);
    }

    #[test]
    fn rows_may_interleave_and_begin_again() {
        let multiple = |n: usize| (0..n).fold(Point::IDENTITY, |sum, _| sum + Point::generator());
        let (old, step) = (|n| Before::Old(multiple(n)), Before::Step);
        let before = [
            old(10),
            old(20),
            step(0),
            step(1),
            Before::Nothing,
            step(2),
            step(4),
            step(3),
        ];
        let mut points: Vec<Point> = (1..=before.len()).map(multiple).collect();
        add_up(&mut points, &before);
        assert_eq!(points, [11, 22, 14, 26, 5, 20, 12, 34].map(multiple));
    }
}
