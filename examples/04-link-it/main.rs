//! A program that brings the allocator along: Rust's System allocator calls malloc. A program that
//! has named another one as its global allocator says so as below.
use std::alloc::System;

#[global_allocator]
static GLOBAL: System = System;

fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let behind_the_name = stat.rsplit(')').next().unwrap();
    behind_the_name.split_whitespace().nth(7).unwrap().parse().unwrap()
}

fn main() {
    let one = std::env::args().count() as f64;
    let (mut before, mut sum) = (0, 0.0);
    for _ in 0..5 {
        before = faults();
        let batch = vec![one; 8 << 20];
        let gradient = batch.clone();
        sum += batch[0] + gradient[gradient.len() - 1];
    }
    println!("sum {}, step 4: {} page faults", sum, faults() - before);
}
